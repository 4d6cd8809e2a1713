#pragma once

#include "inference/vision/picture.hpp"

namespace parley::inference::vision {

/// Bicubic with antialiasing, bit for bit like Pillow 12 on 8-bit RGB: columns first, then rows, rounded to 8 bits in
/// between, weights in fixed point (docs/model/thinker.md 2.2). An axis whose size does not change is not resampled.
/// Sizes in pixels, at least 1. Thread-safe.
picture resize(const picture& from, int width, int height);

} // namespace parley::inference::vision
