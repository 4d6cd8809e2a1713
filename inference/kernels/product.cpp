#include "inference/kernels/product.hpp"

#include "inference/kernels/simd.hpp"

namespace parley::inference::cpu {

namespace {

/// A block of the result that stays in registers.
constexpr std::int64_t block_rows = 4, block_columns = 4;

PARLEY_INLINE void put(float value, float& to, bool add) {
  to = add ? to + value : value;
}

/// 4 rows of x against 4 rows of the matrix.
PARLEY_INLINE void whole_block(const float* x, const float* m, std::int64_t in, float* to, std::int64_t stride,
                               bool add) {
  const auto *x0 = x, *x1 = x + in, *x2 = x1 + in, *x3 = x2 + in;
  const auto *m0 = m, *m1 = m + in, *m2 = m1 + in, *m3 = m2 + in;
  float s00 = 0, s01 = 0, s02 = 0, s03 = 0, s10 = 0, s11 = 0, s12 = 0, s13 = 0;
  float s20 = 0, s21 = 0, s22 = 0, s23 = 0, s30 = 0, s31 = 0, s32 = 0, s33 = 0;
#pragma omp simd reduction(+ : s00, s01, s02, s03, s10, s11, s12, s13, s20, s21, s22, s23, s30, s31, s32, s33)
  for (std::int64_t i = 0; i < in; ++i) {
    const auto a = m0[i], b = m1[i], c = m2[i], d = m3[i];
    s00 += x0[i] * a, s01 += x0[i] * b, s02 += x0[i] * c, s03 += x0[i] * d;
    s10 += x1[i] * a, s11 += x1[i] * b, s12 += x1[i] * c, s13 += x1[i] * d;
    s20 += x2[i] * a, s21 += x2[i] * b, s22 += x2[i] * c, s23 += x2[i] * d;
    s30 += x3[i] * a, s31 += x3[i] * b, s32 += x3[i] * c, s33 += x3[i] * d;
  }
  put(s00, to[0], add), put(s01, to[1], add), put(s02, to[2], add), put(s03, to[3], add);
  to += stride;
  put(s10, to[0], add), put(s11, to[1], add), put(s12, to[2], add), put(s13, to[3], add);
  to += stride;
  put(s20, to[0], add), put(s21, to[1], add), put(s22, to[2], add), put(s23, to[3], add);
  to += stride;
  put(s30, to[0], add), put(s31, to[1], add), put(s32, to[2], add), put(s33, to[3], add);
}

/// One row of x against 4 rows of the matrix.
PARLEY_INLINE void one_row(const float* x, const float* m, std::int64_t in, float* to, bool add) {
  const auto *m0 = m, *m1 = m + in, *m2 = m1 + in, *m3 = m2 + in;
  float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
  for (std::int64_t i = 0; i < in; ++i) {
    s0 += x[i] * m0[i], s1 += x[i] * m1[i], s2 += x[i] * m2[i], s3 += x[i] * m3[i];
  }
  put(s0, to[0], add), put(s1, to[1], add), put(s2, to[2], add), put(s3, to[3], add);
}

PARLEY_INLINE void product_of(const float* x, std::int64_t rows, const float* matrix, std::int64_t out, std::int64_t in,
                              float* to, std::int64_t stride, bool add) {
  std::int64_t column = 0;
  for (; column + block_columns <= out; column += block_columns) {
    const auto* m = matrix + column * in;
    std::int64_t row = 0;
    for (; row + block_rows <= rows; row += block_rows)
      whole_block(x + row * in, m, in, to + row * stride + column, stride, add);
    for (; row < rows; ++row) one_row(x + row * in, m, in, to + row * stride + column, add);
  }
  for (; column < out; ++column)
    for (std::int64_t row = 0; row < rows; ++row) {
      auto sum = 0.0F;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = 0; i < in; ++i) sum += x[row * in + i] * matrix[column * in + i];
      put(sum, to[row * stride + column], add);
    }
}

} // namespace

PARLEY_FOR_EACH_CPU void product(const float* x, std::int64_t rows, const float* matrix, std::int64_t out,
                                 std::int64_t in, float* to, std::int64_t stride, bool add) {
  product_of(x, rows, matrix, out, in, to, stride, add);
}

} // namespace parley::inference::cpu
