#include "inference/kernels/product.hpp"

#include "inference/kernels/intrinsics.hpp"

#include <stdexcept>

namespace parley::inference::cpu {

namespace {

/// A block of the result that stays in registers.
constexpr std::int64_t block_rows = 4, block_columns = 4;

template<class Result>
PARLEY_INLINE void put(float value, Result& to, bool add) {
  narrow(add ? widen(to) + value : value, to);
}

/// Four rows of the matrix. They are far apart: processors fetch ahead within a page of memory only, and in four pages at
/// a time the pauses at their ends overlap.
template<class Number>
struct four_rows {
  const Number *m0, *m1, *m2, *m3;
};

/// 4 rows of x against 4 rows of the matrix; results of one row of x are `columns` apart.
template<class Number, class Result>
PARLEY_INLINE void whole_block(const float* x, four_rows<Number> m, std::int64_t in, Result* to, std::int64_t columns,
                               std::int64_t stride, bool add) {
  const auto *x0 = x, *x1 = x + in, *x2 = x1 + in, *x3 = x2 + in;
  float s00 = 0, s01 = 0, s02 = 0, s03 = 0, s10 = 0, s11 = 0, s12 = 0, s13 = 0;
  float s20 = 0, s21 = 0, s22 = 0, s23 = 0, s30 = 0, s31 = 0, s32 = 0, s33 = 0;
#pragma omp simd reduction(+ : s00, s01, s02, s03, s10, s11, s12, s13, s20, s21, s22, s23, s30, s31, s32, s33)
  for (std::int64_t i = 0; i < in; ++i) {
    const auto a = widen(m.m0[i]), b = widen(m.m1[i]), c = widen(m.m2[i]), d = widen(m.m3[i]);
    s00 += x0[i] * a, s01 += x0[i] * b, s02 += x0[i] * c, s03 += x0[i] * d;
    s10 += x1[i] * a, s11 += x1[i] * b, s12 += x1[i] * c, s13 += x1[i] * d;
    s20 += x2[i] * a, s21 += x2[i] * b, s22 += x2[i] * c, s23 += x2[i] * d;
    s30 += x3[i] * a, s31 += x3[i] * b, s32 += x3[i] * c, s33 += x3[i] * d;
  }
  const auto put_row = [&](float a, float b, float c, float d) {
    put(a, to[0], add), put(b, to[columns], add), put(c, to[2 * columns], add), put(d, to[3 * columns], add);
    to += stride;
  };
  put_row(s00, s01, s02, s03);
  put_row(s10, s11, s12, s13);
  put_row(s20, s21, s22, s23);
  put_row(s30, s31, s32, s33);
}

/// One row of x against 4 rows of the matrix.
template<class Number, class Result>
PARLEY_INLINE void one_row(const float* x, four_rows<Number> m, std::int64_t in, Result* to, std::int64_t columns,
                           bool add) {
  float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
  for (std::int64_t i = 0; i < in; ++i) {
    s0 += x[i] * widen(m.m0[i]), s1 += x[i] * widen(m.m1[i]), s2 += x[i] * widen(m.m2[i]), s3 += x[i] * widen(m.m3[i]);
  }
  put(s0, to[0], add), put(s1, to[columns], add), put(s2, to[2 * columns], add), put(s3, to[3 * columns], add);
}

template<class Number, class Result>
PARLEY_INLINE void product_of(const float* x, std::int64_t rows, const Number* matrix, std::int64_t out,
                              std::int64_t in, Result* to, std::int64_t stride, bool add) {
  const auto columns = out / block_columns;
  for (std::int64_t column = 0; column < columns; ++column) {
    const auto* m = matrix + column * in;
    const four_rows<Number> four{m, m + columns * in, m + 2 * columns * in, m + 3 * columns * in};
    std::int64_t row = 0;
    for (; row + block_rows <= rows; row += block_rows)
      whole_block(x + row * in, four, in, to + row * stride + column, columns, stride, add);
    for (; row < rows; ++row) one_row(x + row * in, four, in, to + row * stride + column, columns, add);
  }
  for (auto column = columns * block_columns; column < out; ++column)
    for (std::int64_t row = 0; row < rows; ++row) {
      auto sum = 0.0F;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = 0; i < in; ++i) sum += x[row * in + i] * widen(matrix[column * in + i]);
      put(sum, to[row * stride + column], add);
    }
}

} // namespace

PARLEY_FOR_EACH_CPU void product(const float* x, std::int64_t rows, const float* matrix, std::int64_t out,
                                 std::int64_t in, float* to, std::int64_t stride, bool add) {
  product_of(x, rows, matrix, out, in, to, stride, add);
}

PARLEY_FOR_EACH_CPU void product(const float* x, std::int64_t rows, const bfloat16* matrix, std::int64_t out,
                                 std::int64_t in, bfloat16* to, std::int64_t stride, bool add) {
  product_of(x, rows, matrix, out, in, to, stride, add);
}

#if defined(__x86_64__)

#define PARLEY_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace {

PARLEY_AVX512_BF16 inline __m512bh narrow_vector(const bfloat16* numbers, __mmask32 there) {
  return reinterpret_cast<__m512bh>(_mm512_maskz_loadu_epi16(there, numbers));
}

/// `count` rows of x against 4 rows of the matrix.
template<int count>
PARLEY_AVX512_BF16 inline void narrow_block(const bfloat16* x, four_rows<bfloat16> m, std::int64_t in, bfloat16* to,
                                            std::int64_t columns, std::int64_t stride, bool add) {
  constexpr std::int64_t width = 32;
  __m512 sums[count][block_columns];
  for (auto& of : sums)
    for (auto& each : of) each = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < in; i += width) {
    const auto there = in - i >= width ? ~__mmask32(0) : (__mmask32(1) << (in - i)) - 1;
    const __m512bh numbers[] = {narrow_vector(m.m0 + i, there), narrow_vector(m.m1 + i, there),
                                narrow_vector(m.m2 + i, there), narrow_vector(m.m3 + i, there)};
    for (int r = 0; r < count; ++r) {
      const auto from = narrow_vector(x + r * in + i, there);
      for (int c = 0; c < block_columns; ++c) sums[r][c] = _mm512_dpbf16_ps(sums[r][c], from, numbers[c]);
    }
  }
  for (int r = 0; r < count; ++r)
    for (int c = 0; c < block_columns; ++c) put(_mm512_reduce_add_ps(sums[r][c]), to[r * stride + c * columns], add);
}

} // namespace

PARLEY_AVX512_BF16 void product(const bfloat16* x, std::int64_t rows, const bfloat16* matrix, std::int64_t out,
                                std::int64_t in, bfloat16* to, std::int64_t stride, bool add) {
  const auto columns = out / block_columns;
  const auto blocks = [&](four_rows<bfloat16> four, bfloat16* into, std::int64_t apart) PARLEY_AVX512_BF16 {
    std::int64_t row = 0;
    for (; row + block_rows <= rows; row += block_rows)
      narrow_block<block_rows>(x + row * in, four, in, into + row * stride, apart, stride, add);
    for (; row < rows; ++row) narrow_block<1>(x + row * in, four, in, into + row * stride, apart, stride, add);
  };
  for (std::int64_t column = 0; column < columns; ++column) {
    const auto* m = matrix + column * in;
    blocks({m, m + columns * in, m + 2 * columns * in, m + 3 * columns * in}, to + column, columns);
  }
  for (auto column = columns * block_columns; column < out; ++column) {
    bfloat16 of_one[block_columns];
    const auto* m = matrix + column * in;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (auto& each : of_one) each = to[row * stride + column];
      narrow_block<1>(x + row * in, {m, m, m, m}, in, of_one, 1, 0, add);
      to[row * stride + column] = of_one[0];
    }
  }
}

#else

void product(const bfloat16*, std::int64_t, const bfloat16*, std::int64_t, std::int64_t, bfloat16*, std::int64_t,
             bool) {
  throw std::logic_error("this processor has no products of bfloat16");
}

#endif

} // namespace parley::inference::cpu
