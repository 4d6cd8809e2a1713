#include "inference/kernels/fixed_point.hpp"

#include "inference/kernels/intrinsics.hpp"
#include "inference/kernels/processor.hpp"

#include <algorithm>
#include <cmath>

namespace parley::inference::cpu {

namespace {

constexpr std::int64_t run = fixed_rows::run, half_run = run / 2, stretch = fixed_rows::stretch;

/// Rounds one stretch of `count` numbers; all its runs get the same scale.
PARLEY_FOR_EACH_CPU void round_stretch(const float* x, std::int64_t count, std::int16_t* to, float* scales,
                                       float* sums) {
  constexpr auto most = 32639.0F; // 127 * 256 + 127: both bytes of a number are signed
  auto largest = 0.0F, finite = 0.0F;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(x[i])), finite += x[i] - x[i];
  const auto runs = (count + run - 1) / run;
  if (finite != 0) { // NaN: one of them is not a number, or infinite
    std::fill_n(to, count, std::int16_t{0});
    std::fill_n(scales, runs, finite);
    std::fill_n(sums, runs, finite);
    return;
  }
  if (largest < 1e-30F) largest = 0; // whose inverse would be too large
  const auto by = largest > 0 ? most / largest : 0.0F, scale = largest / most;
  for (std::int64_t at = 0; at < count; at += run) {
    std::int32_t all = 0;
    for (auto i = at; i < std::min(count, at + run); ++i) {
      const auto scaled = x[i] * by;
      to[i] = static_cast<std::int16_t>(scaled + (scaled < 0 ? -0.5F : 0.5F));
      all += to[i];
    }
    scales[at / run] = scale;
    sums[at / run] = scale * static_cast<float>(all);
  }
}

/// Writes one run's part of each of the four planes, which lie `apart` bytes from one another.
PARLEY_FOR_EACH_CPU void split_run(const std::int16_t* numbers, std::int8_t* to, std::int64_t apart) {
  for (std::int64_t second = 0; second < 2; ++second)
    for (std::int64_t i = 0; i < half_run; ++i) {
      const auto number = numbers[second * half_run + i];
      const auto upper = (number + 128) >> 8;
      to[second * apart + i] = static_cast<std::int8_t>(upper);
      to[(2 + second) * apart + i] = static_cast<std::int8_t>(number - 256 * upper);
    }
}

} // namespace

fixed_rows::fixed_rows(const float* x, std::int64_t rows, std::int64_t in, layout as)
    : rows_(rows), in_(in), runs_((in + run - 1) / run), numbers_(static_cast<std::size_t>(rows * runs_ * run)),
      scales_(static_cast<std::size_t>(rows * runs_)), sums_(scales_.size()) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < runs_; i += together) {
      const auto at = static_cast<std::size_t>(row * runs_ + i);
      round_stretch(x + row * in + i * run, std::min(stretch, in - i * run), numbers_.data() + at * run, &scales_[at],
                    &sums_[at]);
    }
  if (as != layout::with_bytes) return;
  bytes_.resize(static_cast<std::size_t>(rows * row_bytes()));
  for (std::int64_t row = 0; row < rows; ++row) split(row);
}

void fixed_rows::split(std::int64_t row) {
  constexpr auto half = together * half_run; // numbers in a plane
  for (std::int64_t i = 0; i < runs_; ++i)
    split_run(numbers_.data() + (row * runs_ + i) * run,
              bytes_.data() + row * row_bytes() + i / together * 4 * half + i % together * half_run, half);
}

PARLEY_FOR_EACH_CPU void plain_product(const fixed_rows& x, const std::int8_t* matrix, std::int64_t out, float* to,
                                       std::int64_t stride) {
  for (std::int64_t column = 0; column < out; ++column)
    for (std::int64_t row = 0; row < x.rows(); ++row) {
      const auto of = x.at(row);
      auto sum = 0.0F;
      for (std::int64_t at = 0; at < x.in(); at += stretch) {
        const auto* numbers = matrix + column * x.in() + at;
        const auto count = std::min(stretch, x.in() - at);
        std::int32_t exact = 0;
        for (std::int64_t i = 0; i < count; ++i) exact += of.numbers[at + i] * numbers[i];
        sum += of.scales[at / run] * static_cast<float>(exact);
      }
      to[row * stride + column] = sum;
    }
}

PARLEY_FOR_EACH_CPU void plain_product(const fixed_rows& x, const int4_rows& matrix, std::int64_t out, float* to,
                                       std::int64_t stride) {
  for (std::int64_t column = 0; column < out; ++column) {
    const auto one = matrix.from(column);
    for (std::int64_t row = 0; row < x.rows(); ++row) {
      const auto of = x.at(row);
      auto sum = 0.0F;
      for (std::int64_t at = 0; at < x.in(); at += run) {
        const auto* steps = one.steps + at / 2;
        const auto* scale = one.scales + at / one.group * 2;
        std::int32_t exact = 0;
        for (std::int64_t i = 0; i < half_run; ++i) {
          exact += of.numbers[at + i] * (steps[i] & 15);
          exact += of.numbers[at + half_run + i] * (steps[i] >> 4);
        }
        const auto by = widen(scale[0]), from_zero = widen(scale[1]) - 8 * by;
        sum += of.scales[at / run] * by * static_cast<float>(exact) + of.sums[at / run] * from_zero;
      }
      to[row * stride + column] = sum;
    }
  }
}

#if defined(__x86_64__)

#define PARLEY_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

namespace {

constexpr std::int64_t columns = 4; ///< streams of the matrix, in different pages, as in product.cpp
constexpr std::int64_t ahead = 512; ///< bytes

/// block(first, apart) for each group of `columns` columns that lie `apart`, of at least as many. Some are computed twice if
/// their number is not a multiple.
template<class Block>
void for_columns(std::int64_t out, Block&& block) {
  const auto apart = out / columns;
  for (std::int64_t column = 0; column < apart; ++column) block(column, apart);
  if (out % columns != 0) block(out - columns, 1);
}

/// to + the products of pairs of 16-bit numbers; two instructions without VNNI.
template<bool vnni>
PARLEY_AVX512 inline __m512i add_products_of_16(__m512i to, __m512i a, __m512i b) {
  if constexpr (vnni) { // GCC inlines its intrinsic only into functions for processors that all have it
    asm("vpdpwssd %2, %1, %0" : "+v"(to) : "v"(a), "v"(b));
    return to;
  } else {
    return _mm512_add_epi32(to, _mm512_madd_epi16(a, b));
  }
}

/// `count` rows of x against four rows of an int8 matrix.
template<bool vnni, int count>
PARLEY_AVX512 inline void block_of(const fixed_rows& x, std::int64_t row, const std::int8_t* const* m, float* to,
                                   std::int64_t apart, std::int64_t stride) {
  __m512 sums[count][columns];
  for (auto& of : sums)
    for (auto& each : of) each = _mm512_setzero_ps();
  const auto in = x.in();
  for (std::int64_t at = 0; at < in; at += stretch) {
    __m512i exact[count][columns];
    for (auto& of : exact)
      for (auto& each : of) each = _mm512_setzero_si512();
    for (std::int64_t i = at; i < std::min(in, at + stretch); i += run) {
      const auto mask = in - i >= run ? ~__mmask32(0) : (__mmask32(1) << (in - i)) - 1;
      __m512i numbers[columns];
      for (std::int64_t c = 0; c < columns; ++c) {
        if (i % 64 == 0) _mm_prefetch(m[c] + i + ahead, _MM_HINT_T0);
        numbers[c] = _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(mask, m[c] + i));
      }
      for (int r = 0; r < count; ++r) {
        const auto from = _mm512_loadu_si512(x.at(row + r).numbers + i);
        for (std::int64_t c = 0; c < columns; ++c)
          exact[r][c] = add_products_of_16<vnni>(exact[r][c], from, numbers[c]);
      }
    }
    for (int r = 0; r < count; ++r) {
      const auto scale = _mm512_set1_ps(x.at(row + r).scales[at / run]);
      for (std::int64_t c = 0; c < columns; ++c)
        sums[r][c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact[r][c]), scale, sums[r][c]);
    }
  }
  for (int r = 0; r < count; ++r)
    for (std::int64_t c = 0; c < columns; ++c) to[r * stride + c * apart] = _mm512_reduce_add_ps(sums[r][c]);
}

template<bool vnni>
PARLEY_AVX512 void fast_product(const fixed_rows& x, const std::int8_t* matrix, std::int64_t out, float* to,
                                std::int64_t stride) {
  if (out < columns) return plain_product(x, matrix, out, to, stride);
  for_columns(out, [&](std::int64_t column, std::int64_t by) PARLEY_AVX512 {
    const auto* from = matrix + column * x.in();
    const std::int8_t* const m[columns] = {from, from + by * x.in(), from + 2 * by * x.in(), from + 3 * by * x.in()};
    std::int64_t row = 0;
    for (; row + 4 <= x.rows(); row += 4) block_of<vnni, 4>(x, row, m, to + row * stride + column, by, stride);
    for (; row < x.rows(); ++row) block_of<vnni, 1>(x, row, m, to + row * stride + column, by, stride);
  });
}

/// The scales of sixteen runs of a row of an int4 matrix, and the value of its step 0.
struct sixteen_lines {
  __m512 scale, zero;
};

PARLEY_AVX512 inline sixteen_lines lines_of(const int4_rows& m, std::int64_t at, __m512i which, __mmask16 there) {
  const auto pairs = _mm512_maskz_loadu_epi32(there, m.scales + at / m.group * 2);
  const auto each = _mm512_permutexvar_epi32(which, pairs);
  const auto scale = _mm512_castsi512_ps(_mm512_slli_epi32(each, 16));
  const auto offset = _mm512_castsi512_ps(_mm512_and_si512(each, _mm512_set1_epi32(~0xFFFF)));
  return {scale, _mm512_fnmadd_ps(_mm512_set1_ps(8), scale, offset)};
}

/// to + the products of each four unsigned bytes with four signed ones; three instructions without VNNI.
template<bool vnni>
PARLEY_AVX512 inline __m512i add_products(__m512i to, __m512i unsigned_bytes, const std::int8_t* signed_bytes) {
  if constexpr (vnni) { // GCC inlines its intrinsic only into functions for processors that all have it
    asm("vpdpbusd %2, %1, %0" : "+v"(to) : "v"(unsigned_bytes), "m"(*reinterpret_cast<const __m512i_u*>(signed_bytes)));
    return to;
  } else {
    const auto pairs = _mm512_maddubs_epi16(unsigned_bytes, _mm512_loadu_si512(signed_bytes)); // at most 2 * 15 * 128
    return _mm512_add_epi32(to, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
  }
}

/// `count` rows of x against `width` rows of an int4 matrix.
template<bool vnni, int count, int width>
PARLEY_AVX512 inline void block_of(const fixed_rows& x, std::int64_t row, const int4_rows* m, float* to,
                                   std::int64_t apart, std::int64_t stride) {
  constexpr std::int64_t span = 16 * run, together = fixed_rows::together, plane = together * half_run;
  const auto low_bits = _mm512_set1_epi8(15);
  const auto runs = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const auto in = x.in(), group = m[0].group;
  const auto which = _mm512_srlv_epi32(runs, _mm512_set1_epi32(group == 32    ? 0
                                                               : group == 64  ? 1
                                                               : group == 128 ? 2
                                                                              : 3));
  __m512 sums[count][width];
  for (auto& of : sums)
    for (auto& each : of) each = _mm512_setzero_ps();
  for (std::int64_t at = 0; at < in; at += span) {
    const auto left = std::min(span, in - at);
    const auto groups = (left + group - 1) / group, here = left / run;
    const auto there = static_cast<__mmask16>((1U << groups) - 1),
               runs_there = static_cast<__mmask16>((1U << here) - 1);
    __m512 scales[count][width];
    for (int c = 0; c < width; ++c) {
      _mm_prefetch(m[c].scales + (at + span) / group * 2, _MM_HINT_T0);
      const auto lines = lines_of(m[c], at, which, there);
      for (int r = 0; r < count; ++r) {
        const auto of = x.at(row + r);
        scales[r][c] = _mm512_mul_ps(lines.scale, _mm512_maskz_loadu_ps(runs_there, of.scales + at / run));
        sums[r][c] = _mm512_fmadd_ps(lines.zero, _mm512_maskz_loadu_ps(runs_there, of.sums + at / run), sums[r][c]);
      }
    }
    for (std::int64_t i = 0; i < here; i += together) { // four runs: one in each quarter of a vector
      const auto from = at + i * run;
      const auto bytes = here - i >= together ? ~__mmask64(0) : (__mmask64(1) << ((here - i) * half_run)) - 1;
      const auto lane = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(i)), _mm512_srli_epi32(runs, 2));
      __m512i first[width], second[width]; // the steps of the first half of each run, and of the other
      for (int c = 0; c < width; ++c) {
        _mm_prefetch(m[c].steps + from / 2 + ahead, _MM_HINT_T0);
        const auto pairs = _mm512_maskz_loadu_epi8(bytes, m[c].steps + from / 2);
        first[c] = _mm512_and_si512(pairs, low_bits);
        second[c] = _mm512_and_si512(_mm512_srli_epi16(pairs, 4), low_bits);
      }
      for (int r = 0; r < count; ++r) {
        const auto* by = x.at(row + r).bytes + from * 2;
        for (int c = 0; c < width; ++c) {
          const auto none = _mm512_setzero_si512();
          const auto upper = add_products<vnni>(add_products<vnni>(none, first[c], by), second[c], by + plane);
          const auto lower =
              add_products<vnni>(add_products<vnni>(none, first[c], by + 2 * plane), second[c], by + 3 * plane);
          const auto exact = _mm512_add_epi32(_mm512_slli_epi32(upper, 8), lower);
          sums[r][c] =
              _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), _mm512_permutexvar_ps(lane, scales[r][c]), sums[r][c]);
        }
      }
    }
  }
  for (int r = 0; r < count; ++r)
    for (int c = 0; c < width; ++c) to[r * stride + c * apart] = _mm512_reduce_add_ps(sums[r][c]);
}

template<bool vnni>
PARLEY_AVX512 void fast_product(const fixed_rows& x, const int4_rows& matrix, std::int64_t out, float* to,
                                std::int64_t stride) {
  if (out < columns) return plain_product(x, matrix, out, to, stride);
  for_columns(out, [&](std::int64_t column, std::int64_t by) PARLEY_AVX512 {
    const int4_rows m[columns] = {matrix.from(column), matrix.from(column + by), matrix.from(column + 2 * by),
                                  matrix.from(column + 3 * by)};
    std::int64_t row = 0;
    for (; row + 4 <= x.rows(); row += 4) {
      block_of<vnni, 4, 2>(x, row, m, to + row * stride + column, by, stride);
      block_of<vnni, 4, 2>(x, row, m + 2, to + row * stride + column + 2 * by, by, stride);
    }
    for (; row < x.rows(); ++row) block_of<vnni, 1, 4>(x, row, m, to + row * stride + column, by, stride);
  });
}

} // namespace

#else

namespace {
template<bool vnni, class Matrix>
void fast_product(const fixed_rows& x, const Matrix& matrix, std::int64_t out, float* to, std::int64_t stride) {
  plain_product(x, matrix, out, to, stride);
}
} // namespace

#endif

namespace {
template<class Matrix>
void fastest_product(const fixed_rows& x, const Matrix& matrix, std::int64_t out, float* to, std::int64_t stride) {
  if (has_vnni())
    fast_product<true>(x, matrix, out, to, stride);
  else if (has_avx512())
    fast_product<false>(x, matrix, out, to, stride);
  else
    plain_product(x, matrix, out, to, stride);
}
} // namespace

void product(const fixed_rows& x, const std::int8_t* matrix, std::int64_t out, float* to, std::int64_t stride) {
  fastest_product(x, matrix, out, to, stride);
}

void product(const fixed_rows& x, const int4_rows& matrix, std::int64_t out, float* to, std::int64_t stride) {
  fastest_product(x, matrix, out, to, stride);
}

void product_without_vnni(const fixed_rows& x, const std::int8_t* matrix, std::int64_t out, float* to,
                          std::int64_t stride) {
  fast_product<false>(x, matrix, out, to, stride);
}

void product_without_vnni(const fixed_rows& x, const int4_rows& matrix, std::int64_t out, float* to,
                          std::int64_t stride) {
  fast_product<false>(x, matrix, out, to, stride);
}

} // namespace parley::inference::cpu
