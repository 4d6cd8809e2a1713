#pragma once

#include "inference/vision/decode.hpp"
#include "inference/vision/slices.hpp"
#include "inference/vocabulary.hpp"

#include <tl/expected.hpp>

#include <string>

// The parts of a picture that the encoder receives (docs/model/thinker.md 2.1 to 2.3). No torch: this runs on any
// thread, beside the engine's.
namespace parley::inference::vision {

/// One piece in the encoder's format: `rows` * `columns` patches, row by row, each [channel][y][x].
struct patch_grid {
  int rows = 0;
  int columns = 0;
  std::vector<std::uint8_t> values; ///< rows * columns * 3 * patch * patch

  int patches() const { return rows * columns; }
};

/// A picture, ready for the encoder: the overview and the cells of its grid.
struct sliced_picture {
  std::optional<slice_grid> grid;
  std::vector<patch_grid> pieces; ///< 1 or 1 + columns * rows
};

/// The sides of `piece` are multiples of `patch_size`.
patch_grid to_patches(const picture& piece, int patch_size);

/// Decodes and slices a file. `max_slice_nums` as in `plan_slices`. Errors concern the file, in words for the client.
/// `wanted` as in `decode_picture`.
tl::expected<sliced_picture, std::string> slice_file(const std::string& file, int max_slice_nums, const slicing& how,
                                                     const still_wanted& wanted = {});

} // namespace parley::inference::vision
