#include "inference/verify/golden_pictures.hpp"

#include "base/read_file.hpp"
#include "inference/vision/decode.hpp"
#include "inference/vision/sight.hpp"

#include <algorithm>
#include <stdexcept>

namespace parley::inference::verify {

vision::picture draw_picture(golden_set& files, const std::string& name) {
  const auto& parameters = files.cases("image").at("procedural").at(name);
  const int width = parameters.at("w"), height = parameters.at("h"), k = parameters.at("k");
  vision::picture drawn{width, height, {}};
  drawn.rgb.reserve(static_cast<std::size_t>(3) * static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const auto check = ((x / (11 + k) + y / (7 + k)) % 2) * 60;
      const auto red = x * 255 / std::max(width - 1, 1) + check;
      const auto green = y * 255 / std::max(height - 1, 1) + x * y / (97 + k);
      const auto blue = (x * x + 3 * y * y) / (61 + 13 * k) + check;
      for (auto value : {red, green, blue}) drawn.rgb.push_back(static_cast<std::uint8_t>(value % 256));
    }
  return drawn;
}

vision::picture read_picture(const std::filesystem::path& file) {
  const auto bytes = base::read_file(file);
  if (!bytes) throw std::runtime_error(file.string() + ": cannot be read");
  auto decoded = vision::decode_picture(*bytes);
  if (!decoded) throw std::runtime_error(file.string() + ": " + decoded.error());
  return *std::move(decoded);
}

vision::sliced_picture cut_picture(golden_set& files, const std::string& name, const nlohmann::json& max_slice_nums) {
  const auto& config = files.config().vision;
  auto whole = std::filesystem::exists(files.directory() / "image.json")
                   ? draw_picture(files, name)
                   : read_picture(files.directory() / files.cases("manifest").at("frames").at(name).at("file"));
  auto most = max_slice_nums.is_null() ? config.max_slice_nums : max_slice_nums.get<int>();
  auto plan = plan_slices({whole.width, whole.height}, most, vision::slicing_of(config));
  vision::sliced_picture result{plan.grid, {}};
  for (const auto& piece : cut_pieces(whole, plan)) result.pieces.push_back(to_patches(piece, config.patch_size));
  return result;
}

std::vector<vision::sliced_picture> cut_frames(golden_set& files, const nlohmann::json& input) {
  std::vector<vision::sliced_picture> frames;
  if (!input.contains("frames") || input["frames"].is_null()) return frames;
  auto most = input.value("max_slice_nums", nlohmann::json(1));
  for (auto i = std::size_t{0}; i < input["frames"].size(); ++i)
    frames.push_back(cut_picture(files, input["frames"][i], most.is_array() ? most.at(i) : most));
  return frames;
}

} // namespace parley::inference::verify
