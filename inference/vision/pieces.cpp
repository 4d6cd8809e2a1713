#include "inference/vision/pieces.hpp"

namespace parley::inference::vision {

patch_grid to_patches(const picture& piece, int patch_size) {
  patch_grid grid{piece.height / patch_size, piece.width / patch_size, {}};
  grid.values.resize(piece.rgb.size());
  auto* out = grid.values.data();
  for (int row = 0; row < grid.rows; ++row)
    for (int column = 0; column < grid.columns; ++column)
      for (int channel = 0; channel < 3; ++channel)
        for (int y = 0; y < patch_size; ++y) {
          auto line = static_cast<std::size_t>(row * patch_size + y) * static_cast<std::size_t>(piece.width);
          const auto* px = piece.rgb.data() + 3 * (line + static_cast<std::size_t>(column * patch_size)) + channel;
          for (int x = 0; x < patch_size; ++x) *out++ = px[3 * x];
        }
  return grid;
}

tl::expected<sliced_picture, std::string> slice_file(const std::string& file, int max_slice_nums, const slicing& how,
                                                     const still_wanted& wanted) {
  auto whole = decode_picture(file, wanted);
  if (!whole) return tl::unexpected(whole.error());
  auto plan = plan_slices({whole->width, whole->height}, max_slice_nums, how);
  sliced_picture result{plan.grid, {}};
  for (const auto& piece : cut_pieces(*whole, plan)) result.pieces.push_back(to_patches(piece, how.patch_size));
  return result;
}

} // namespace parley::inference::vision
