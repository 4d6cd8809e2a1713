#pragma once

#include "inference/kernels/simd.hpp"

#include <cstdint>

namespace parley::inference::cpu {

// A few rows times a large matrix: [rows, in] x [out, in]^T, summed in float32. The matrix is read only once, whatever the
// number of rows, so a product of a few rows runs at memory speed. Rows of `x` are `in` apart, results `stride` apart;
// `add` adds to the existing contents.

void product(const float* x, std::int64_t rows, const float* matrix, std::int64_t out, std::int64_t in, float* to,
             std::int64_t stride, bool add);

/// The sums are rounded once, after they have been added.
void product(const float* x, std::int64_t rows, const bfloat16* matrix, std::int64_t out, std::int64_t in, bfloat16* to,
             std::int64_t stride, bool add);

/// The same for rows in bfloat16, by the processor's own products: only where it has them (multiplies_bfloat16).
void product(const bfloat16* x, std::int64_t rows, const bfloat16* matrix, std::int64_t out, std::int64_t in,
             bfloat16* to, std::int64_t stride, bool add);

} // namespace parley::inference::cpu
