#include "inference/kernels/int4.hpp"

#include "inference/kernels/processor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" // of g++ 12's own intrinsics
#endif
#endif

namespace parley::inference::cpu {

namespace {

/// Numbers whose steps share 16 bytes.
constexpr std::int64_t run = 32, half_run = run / 2;

constexpr std::int64_t largest_group = 256;

PARLEY_INLINE float step_of(std::uint8_t pair, bool upper) {
  return static_cast<float>((upper ? pair >> 4 : pair & 15) - 8);
}

/// The numbers of one run.
template<class Number>
PARLEY_INLINE void unpack_run(const std::uint8_t* steps, float scale, float offset, Number* to) {
  for (std::int64_t i = 0; i < half_run; ++i) {
    narrow(step_of(steps[i], false) * scale + offset, to[i]);
    narrow(step_of(steps[i], true) * scale + offset, to[i + half_run]);
  }
}

template<class Number>
PARLEY_INLINE void unpack_rows(const int4_rows& matrix, std::int64_t count, Number* to) {
  for (std::int64_t at = 0; at < count * matrix.in; at += run) {
    const auto* scale = matrix.scales + at / matrix.group * 2;
    unpack_run(matrix.steps + at / 2, widen(scale[0]), widen(scale[1]), to + at);
  }
}

/// A number is (step - 8) * scale + offset.
struct line {
  float scale, offset;
};

/// As it is stored.
PARLEY_INLINE line rounded(line of) {
  bfloat16 scale, offset;
  narrow(std::max(std::abs(of.scale), 1e-12F), scale);
  narrow(of.offset, offset);
  return {widen(scale), widen(offset)};
}

PARLEY_INLINE float nearest_step(float number, line of) {
  const auto step = std::floor((number - of.offset) / of.scale + 8.5F);
  return (step < 0 ? 0 : step > 15 ? 15 : step) - 8;
}

/// A group, and how much an error of each number counts.
struct group {
  const float *numbers, *weights;
  std::int64_t count;
};

/// The line that fits the numbers best, if they keep the steps that they have on this one.
PARLEY_INLINE line fitted(const group& all, line of) {
  auto weights = 0.0F, steps = 0.0F, squares = 0.0F, sum = 0.0F, products = 0.0F;
#pragma omp simd reduction(+ : weights, steps, squares, sum, products)
  for (std::int64_t i = 0; i < all.count; ++i) {
    const auto number = all.numbers[i], weight = all.weights[i], step = nearest_step(number, of);
    weights += weight, steps += weight * step, squares += weight * step * step;
    sum += weight * number, products += weight * step * number;
  }
  const auto spread = squares * weights - steps * steps;
  if (spread < 1e-3F * weights * weights) return of; // all on one step
  const auto scale = (products * weights - steps * sum) / spread;
  return rounded({scale, (sum - scale * steps) / weights});
}

PARLEY_INLINE float weighted_error(const group& all, line of) {
  auto sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < all.count; ++i) {
    const auto apart = nearest_step(all.numbers[i], of) * of.scale + of.offset - all.numbers[i];
    sum += all.weights[i] * apart * apart;
  }
  return sum;
}

} // namespace

PARLEY_FOR_EACH_CPU void quantize_group(const float* numbers, std::int64_t count, std::uint8_t* steps, bfloat16& scale,
                                        bfloat16& offset) {
  auto squares = 0.0F;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < count; ++i) squares += numbers[i] * numbers[i];
  const auto mean = std::max(squares / static_cast<float>(count), std::numeric_limits<float>::min());
  float weights[largest_group];
  for (std::int64_t i = 0; i < count; ++i) weights[i] = 1 + numbers[i] * numbers[i] / mean;
  const group all{numbers, weights, count};
  const auto [lowest, highest] = std::minmax_element(numbers, numbers + count);
  const auto middle = (*lowest + *highest) / 2, range = *highest - *lowest;
  line best{};
  auto least = std::numeric_limits<float>::infinity();
  for (const auto part : {1.0F, 0.95F, 0.9F, 0.84F, 0.77F, 0.7F, 0.6F}) {
    const auto step = range * part / 15;
    auto of = rounded({step, middle + step / 2});
    for (auto fits = 0; fits < 3; ++fits) {
      if (const auto error = weighted_error(all, of); error < least) least = error, best = of;
      of = fitted(all, of);
    }
  }
  narrow(best.scale, scale);
  narrow(best.offset, offset);
  for (std::int64_t i = 0; i < count; ++i) steps[i] = static_cast<std::uint8_t>(nearest_step(numbers[i], best) + 8);
}

PARLEY_FOR_EACH_CPU void unpack(const int4_rows& matrix, std::int64_t count, float* to) {
  unpack_rows(matrix, count, to);
}

PARLEY_FOR_EACH_CPU void unpack(const int4_rows& matrix, std::int64_t count, bfloat16* to) {
  unpack_rows(matrix, count, to);
}

PARLEY_FOR_EACH_CPU void plain_product(const float* x, std::int64_t rows, const int4_rows& matrix, std::int64_t out,
                                       float* to, std::int64_t stride) {
  float numbers[run];
  for (std::int64_t column = 0; column < out; ++column) {
    const auto one = matrix.from(column);
    for (std::int64_t row = 0; row < rows; ++row) to[row * stride + column] = 0;
    for (std::int64_t at = 0; at < matrix.in; at += run) {
      const auto* scale = one.scales + at / matrix.group * 2;
      unpack_run(one.steps + at / 2, widen(scale[0]), widen(scale[1]), numbers);
      for (std::int64_t row = 0; row < rows; ++row) {
        auto sum = 0.0F;
        const auto* of = x + row * matrix.in + at;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = 0; i < run; ++i) sum += of[i] * numbers[i];
        to[row * stride + column] += sum;
      }
    }
  }
}

#if defined(__x86_64__)

#define PARLEY_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

namespace {

/// `count` rows of x against two rows of the matrix. A table turns steps into floats: one instruction for sixteen.
template<int count>
PARLEY_AVX512 inline void two_columns(const float* x, const int4_rows& a, const int4_rows& b, float* to_a, float* to_b,
                                      std::int64_t stride) {
  const auto table = _mm512_set_ps(7, 6, 5, 4, 3, 2, 1, 0, -1, -2, -3, -4, -5, -6, -7, -8);
  constexpr std::int64_t ahead = 8 * run; // bytes
  __m512 sums_a[count], sums_b[count];
  for (auto& each : sums_a) each = _mm512_setzero_ps();
  for (auto& each : sums_b) each = _mm512_setzero_ps();
  for (std::int64_t at = 0; at < a.in; at += run) {
    if (at % (4 * run) == 0) {
      _mm_prefetch(a.steps + at / 2 + ahead, _MM_HINT_T0);
      _mm_prefetch(b.steps + at / 2 + ahead, _MM_HINT_T0);
    }
    const auto* scale_a = a.scales + at / a.group * 2;
    const auto* scale_b = b.scales + at / b.group * 2;
    const auto steps_a = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a.steps + at / 2)));
    const auto steps_b = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b.steps + at / 2)));
    const auto by_a = _mm512_set1_ps(widen(scale_a[0])), plus_a = _mm512_set1_ps(widen(scale_a[1]));
    const auto by_b = _mm512_set1_ps(widen(scale_b[0])), plus_b = _mm512_set1_ps(widen(scale_b[1]));
    // The table's instruction looks at the lowest four bits only.
    const auto lower_a = _mm512_fmadd_ps(_mm512_permutexvar_ps(steps_a, table), by_a, plus_a);
    const auto upper_a = _mm512_fmadd_ps(_mm512_permutexvar_ps(_mm512_srli_epi32(steps_a, 4), table), by_a, plus_a);
    const auto lower_b = _mm512_fmadd_ps(_mm512_permutexvar_ps(steps_b, table), by_b, plus_b);
    const auto upper_b = _mm512_fmadd_ps(_mm512_permutexvar_ps(_mm512_srli_epi32(steps_b, 4), table), by_b, plus_b);
    for (int row = 0; row < count; ++row) {
      const auto* of = x + row * a.in + at;
      const auto lower = _mm512_loadu_ps(of), upper = _mm512_loadu_ps(of + half_run);
      sums_a[row] = _mm512_fmadd_ps(upper, upper_a, _mm512_fmadd_ps(lower, lower_a, sums_a[row]));
      sums_b[row] = _mm512_fmadd_ps(upper, upper_b, _mm512_fmadd_ps(lower, lower_b, sums_b[row]));
    }
  }
  for (int row = 0; row < count; ++row) {
    to_a[row * stride] = _mm512_reduce_add_ps(sums_a[row]);
    to_b[row * stride] = _mm512_reduce_add_ps(sums_b[row]);
  }
}

PARLEY_AVX512 void fast_product(const float* x, std::int64_t rows, const int4_rows& matrix, std::int64_t out, float* to,
                                std::int64_t stride) {
  // Two streams in different pages, as in product.cpp. An odd last column is computed twice.
  const auto half = (out + 1) / 2, second = out / 2;
  for (std::int64_t column = 0; column < half; ++column) {
    const auto a = matrix.from(column), b = matrix.from(column + second);
    auto *to_a = to + column, *to_b = to + column + second;
    std::int64_t row = 0;
    for (; row + 8 <= rows; row += 8)
      two_columns<8>(x + row * matrix.in, a, b, to_a + row * stride, to_b + row * stride, stride);
    for (; row + 4 <= rows; row += 4)
      two_columns<4>(x + row * matrix.in, a, b, to_a + row * stride, to_b + row * stride, stride);
    for (; row < rows; ++row)
      two_columns<1>(x + row * matrix.in, a, b, to_a + row * stride, to_b + row * stride, stride);
  }
}

} // namespace

#else

namespace {
constexpr auto fast_product = plain_product;
}

#endif

void product(const float* x, std::int64_t rows, const int4_rows& matrix, std::int64_t out, float* to,
             std::int64_t stride) {
  (has_avx512() ? fast_product : plain_product)(x, rows, matrix, out, to, stride);
}

} // namespace parley::inference::cpu
