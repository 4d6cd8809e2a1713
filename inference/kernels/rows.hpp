#pragma once

#include "inference/kernels/simd.hpp"

#include <cstdint>

// Row-wise arithmetic of transformer layers in plain memory. Rows are adjacent, and each result depends on its own row
// only.
namespace parley::inference::cpu {

/// to = x / rms(x) * weight, over `width` numbers of each row. The mean is computed in float32.
void rms_norm(const float* x, const float* weight, float* to, std::int64_t rows, std::int64_t width, float eps);
void rms_norm(const bfloat16* x, const bfloat16* weight, bfloat16* to, std::int64_t rows, std::int64_t width,
              float eps);

/// to = silu(gate) * up; a row of `gate_up` is [gate; up], `width` each.
void silu_mul(const float* gate_up, float* to, std::int64_t rows, std::int64_t width);
void silu_mul(const bfloat16* gate_up, bfloat16* to, std::int64_t rows, std::int64_t width);

/// The rotation for one row: cosines and sines of its position, `head_dim` each; the sines include the sign of
/// rotate_half.
struct rotation {
  const float* cosine;
  const float* sine;
};

/// One head: normalised with `weight` (if not null), then rotated. `to` must not be `x`.
void turn_head(const float* x, const float* weight, rotation by, float* to, std::int64_t head_dim, float eps);
void turn_head(const bfloat16* x, const bfloat16* weight, rotation by, bfloat16* to, std::int64_t head_dim, float eps);

/// Rounds `count` numbers to bfloat16 and writes them to `to` as floats.
void round_to_bfloat16(const float* x, float* to, std::int64_t count);

/// x *= by, and x += by, number by number.
void multiply(float* x, const float* by, std::int64_t count);
void add(float* x, const float* by, std::int64_t count);

} // namespace parley::inference::cpu
