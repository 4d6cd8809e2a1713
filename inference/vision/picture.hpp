#pragma once

#include <cstdint>
#include <vector>

namespace parley::inference::vision {

/// Pixels in memory: 8-bit RGB, rows from top to bottom without gaps.
struct picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb; ///< 3 * width * height
};

} // namespace parley::inference::vision
