#pragma once

#include "inference/vision/slices.hpp"

#include <string>

namespace parley::inference::vision {

/// The tokens that represent a picture in a chat prompt (docs/model/thinker.md 6.2): overview, then the rows of its
/// grid, each piece between its own marks. `number`: the picture's number in the prompt; none = no image id.
std::string image_placeholder(const std::optional<slice_grid>& grid, int rows_per_piece,
                              std::optional<std::size_t> number);

} // namespace parley::inference::vision
