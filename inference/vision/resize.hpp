#pragma once

#include "inference/vision/picture.hpp"

namespace parley::inference::vision {

/// Bicubic with antialiasing, bit for bit as Pillow 12 does it on 8-bit RGB: columns first, then rows, rounded to 8
/// bits in between, weights in fixed point (THINKER.md 2.2). An axis whose size stays is not touched. Sizes in pixels,
/// at least 1. Thread-safe.
picture resize(const picture& from, int width, int height);

} // namespace parley::inference::vision
