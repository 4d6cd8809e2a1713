#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace parley::inference::vision {

/// For each of `patches` patches along an axis, the nearest row or column at or below it in a table with `table_side`
/// of them (docs/model/thinker.md 2.4). int64 [patches], on the CPU like all results below.
at::Tensor bucket_coordinates(std::int64_t patches, std::int64_t table_side);

/// Rows of the position table for a grid of patches, row by row: int64 [rows * columns].
at::Tensor position_ids(std::int64_t rows, std::int64_t columns, std::int64_t table_side);

/// Sine and cosine of the coordinates 0 ... count - 1, float32 [count, width]; half of what the resampler adds to a key
/// (docs/model/thinker.md 2.5).
at::Tensor sine_table(std::int64_t count, std::int64_t width);

} // namespace parley::inference::vision
