#include "inference/kernels/rows.hpp"

#include <cmath>

namespace parley::inference::cpu {

namespace {

template<class T>
PARLEY_INLINE float scale_of(const T* x, std::int64_t width, float eps) {
  auto sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < width; ++i) sum += widen(x[i]) * widen(x[i]);
  return 1.0F / std::sqrt(sum / static_cast<float>(width) + eps);
}

template<class T>
PARLEY_INLINE void norm_rows(const T* x, const T* weight, T* to, std::int64_t rows, std::int64_t width, float eps) {
  for (std::int64_t row = 0; row < rows; ++row, x += width, to += width) {
    const auto scale = scale_of(x, width, eps);
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) narrow(widen(x[i]) * scale * widen(weight[i]), to[i]);
  }
}

template<class T>
PARLEY_INLINE void gate_rows(const T* gate_up, T* to, std::int64_t rows, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row, gate_up += 2 * width, to += width) {
    const auto* up = gate_up + width;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const auto gate = widen(gate_up[i]);
      narrow(gate / (1.0F + exp(-gate)) * widen(up[i]), to[i]);
    }
  }
}

template<class T>
PARLEY_INLINE void turn(const T* x, const T* weight, rotation by, T* to, std::int64_t head_dim, float eps) {
  const auto scale = weight ? scale_of(x, head_dim, eps) : 1.0F;
  const auto half = head_dim / 2;
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const auto a = widen(x[i]) * scale * (weight ? widen(weight[i]) : 1.0F);
    const auto b = widen(x[i + half]) * scale * (weight ? widen(weight[i + half]) : 1.0F);
    narrow(a * by.cosine[i] + b * by.sine[i], to[i]);
    narrow(b * by.cosine[i + half] + a * by.sine[i + half], to[i + half]);
  }
}

} // namespace

PARLEY_FOR_EACH_CPU void rms_norm(const float* x, const float* weight, float* to, std::int64_t rows, std::int64_t width,
                                  float eps) {
  norm_rows(x, weight, to, rows, width, eps);
}

PARLEY_FOR_EACH_CPU void rms_norm(const bfloat16* x, const bfloat16* weight, bfloat16* to, std::int64_t rows,
                                  std::int64_t width, float eps) {
  norm_rows(x, weight, to, rows, width, eps);
}

PARLEY_FOR_EACH_CPU void silu_mul(const float* gate_up, float* to, std::int64_t rows, std::int64_t width) {
  gate_rows(gate_up, to, rows, width);
}

PARLEY_FOR_EACH_CPU void silu_mul(const bfloat16* gate_up, bfloat16* to, std::int64_t rows, std::int64_t width) {
  gate_rows(gate_up, to, rows, width);
}

PARLEY_FOR_EACH_CPU void turn_head(const float* x, const float* weight, rotation by, float* to, std::int64_t head_dim,
                                   float eps) {
  turn(x, weight, by, to, head_dim, eps);
}

PARLEY_FOR_EACH_CPU void turn_head(const bfloat16* x, const bfloat16* weight, rotation by, bfloat16* to,
                                   std::int64_t head_dim, float eps) {
  turn(x, weight, by, to, head_dim, eps);
}

PARLEY_FOR_EACH_CPU void round_to_bfloat16(const float* x, float* to, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    bfloat16 rounded;
    narrow(x[i], rounded);
    to[i] = widen(rounded);
  }
}

PARLEY_FOR_EACH_CPU void multiply(float* x, const float* by, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) x[i] *= by[i];
}

PARLEY_FOR_EACH_CPU void add(float* x, const float* by, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) x[i] += by[i];
}

} // namespace parley::inference::cpu
