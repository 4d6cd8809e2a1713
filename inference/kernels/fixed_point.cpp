#include "inference/kernels/fixed_point.hpp"

#include "inference/kernels/intrinsics.hpp"
#include "inference/kernels/processor.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

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

constexpr std::int64_t word = int4_rows::word, words = int4_rows::words, tile_runs = int4_rows::tile_runs;

/// Writes the words of one run into the planes of its tile, of which it has this lane.
PARLEY_FOR_EACH_CPU void split_run(const std::int16_t* numbers, std::int64_t lane, fixed_rows::plane* to) {
  std::int8_t upper[run], lower[run];
  for (std::int64_t i = 0; i < run; ++i) {
    upper[i] = static_cast<std::int8_t>((numbers[i] + 128) >> 8);
    lower[i] = static_cast<std::int8_t>(numbers[i]);
  }
  for (std::int64_t w = 0; w < words; ++w, to += fixed_rows::planes_of_word) {
    std::memcpy(to[0].bytes + lane * word, upper + w * word, word);
    std::memcpy(to[1].bytes + lane * word, upper + half_run + w * word, word);
    std::memcpy(to[2].bytes + lane * word, lower + w * word, word);
    std::memcpy(to[3].bytes + lane * word, lower + half_run + w * word, word);
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
  planes_.resize(static_cast<std::size_t>(rows * planes_of_row()));
  for (std::int64_t row = 0; row < rows; ++row) split(row);
}

void fixed_rows::split(std::int64_t row) {
  auto* planes = planes_.data() + row * planes_of_row();
  for (std::int64_t i = 0; i < runs_; ++i)
    split_run(numbers_.data() + (row * runs_ + i) * run, i % tile_runs, planes + i / tile_runs * planes_of_tile);
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
        const auto place = int4_rows::place_of(at, x.in());
        const auto* scale = one.scales + at / one.group * 2;
        std::int32_t exact = 0;
        for (std::int64_t i = 0; i < half_run; ++i) {
          const auto both = one.steps[place.of(i)];
          exact += of.numbers[at + i] * (both & 15);
          exact += of.numbers[at + half_run + i] * (both >> 4);
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

constexpr int columns = 4;          ///< streams of the matrix, in different pages, as in product.cpp
constexpr std::int64_t ahead = 256; ///< bytes

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

/// Multiplies `count` rows of x by four rows of an int8 matrix, a stretch of inputs at a time. Its pointers are at the next
/// input.
template<int count>
struct int8_block {
  static constexpr int rows = count;
  static constexpr std::int64_t step = stretch; ///< inputs

  fixed_rows::row x[count];
  const std::int8_t* m[columns];
  __m512 sums[count][columns];

  /// Adds the products of the next stretch, or of the last `left` inputs if there are fewer.
  template<bool vnni, bool whole>
  PARLEY_AVX512 void add(std::int64_t left) {
    __m512i exact[count][columns];
    for (auto& of : exact)
      for (auto& each : of) each = _mm512_setzero_si512();
    for (std::int64_t i = 0; i < (whole ? stretch : left); i += run) {
      const auto there = left - i >= run ? ~__mmask32(0) : (__mmask32(1) << (left - i)) - 1;
      __m512i numbers[columns];
      for (int c = 0; c < columns; ++c) {
        if (i % 64 == 0) _mm_prefetch(m[c] + i + ahead, _MM_HINT_T0);
        const auto* from = m[c] + i;
        numbers[c] = _mm512_cvtepi8_epi16(whole ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))
                                                : _mm256_maskz_loadu_epi8(there, from));
      }
      for (int r = 0; r < count; ++r) {
        const auto from = _mm512_loadu_si512(x[r].numbers + i);
        for (int c = 0; c < columns; ++c) exact[r][c] = add_products_of_16<vnni>(exact[r][c], from, numbers[c]);
      }
    }
    for (int r = 0; r < count; ++r) {
      const auto scale = _mm512_set1_ps(*x[r].scales);
      for (int c = 0; c < columns; ++c)
        sums[r][c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact[r][c]), scale, sums[r][c]);
    }
  }

  void advance() {
    for (auto& of : x) of.numbers += stretch, of.scales += stretch / run;
    for (auto& of : m) of += stretch;
  }
};

/// Writes the products of a block's rows of x, from `row` on, with four rows of a matrix, of which `m` has the beginnings.
template<bool vnni, class Block, class Column>
PARLEY_AVX512 inline void block_of(const fixed_rows& x, std::int64_t row, const Column* m, float* to,
                                   std::int64_t apart, std::int64_t stride) {
  Block block;
  for (int r = 0; r < Block::rows; ++r) block.x[r] = x.at(row + r);
  for (int c = 0; c < columns; ++c) block.m[c] = m[c];
  for (auto& of : block.sums)
    for (auto& each : of) each = _mm512_setzero_ps();
  auto left = x.in();
  for (; left >= Block::step; left -= Block::step, block.advance()) block.template add<vnni, true>(left);
  if (left > 0) block.template add<vnni, false>(left);
  for (int r = 0; r < Block::rows; ++r)
    for (int c = 0; c < columns; ++c) to[r * stride + c * apart] = _mm512_reduce_add_ps(block.sums[r][c]);
}

template<bool vnni>
PARLEY_AVX512 void fast_product(const fixed_rows& x, const std::int8_t* matrix, std::int64_t out, float* to,
                                std::int64_t stride) {
  if (out < columns) return plain_product(x, matrix, out, to, stride);
  for_columns(out, [&](std::int64_t column, std::int64_t by) PARLEY_AVX512 {
    const auto* from = matrix + column * x.in();
    const std::int8_t* const m[columns] = {from, from + by * x.in(), from + 2 * by * x.in(), from + 3 * by * x.in()};
    std::int64_t row = 0;
    for (; row + 4 <= x.rows(); row += 4)
      block_of<vnni, int8_block<4>>(x, row, m, to + row * stride + column, by, stride);
    for (; row < x.rows(); ++row) block_of<vnni, int8_block<1>>(x, row, m, to + row * stride + column, by, stride);
  });
}

/// to + the products of each four unsigned bytes with four signed ones; three instructions without VNNI.
template<bool vnni>
PARLEY_AVX512 inline __m512i add_products(__m512i to, __m512i unsigned_bytes, __m512i signed_bytes) {
  if constexpr (vnni) { // GCC inlines its intrinsic only into functions for processors that all have it
    asm("vpdpbusd %2, %1, %0" : "+v"(to) : "v"(unsigned_bytes), "v"(signed_bytes));
    return to;
  } else {
    const auto pairs = _mm512_maddubs_epi16(unsigned_bytes, signed_bytes); // at most 2 * 15 * 128
    return _mm512_add_epi32(to, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
  }
}

/// Multiplies `count` rows of x by four rows of an int4 matrix, a tile of inputs at a time; each lane of a vector works on one run.
/// Its pointers are at the next input.
template<int count>
struct int4_block {
  static constexpr int rows = count;
  static constexpr std::int64_t step = int4_rows::tile; ///< inputs

  fixed_rows::row x[count];
  int4_rows m[columns];
  __m512 sums[count][columns];

  /// How many runs a group has, as a power of two.
  int group_log() const { return __builtin_ctzll(static_cast<unsigned long long>(m[0].group / run)); }

  /// The scales of the runs of a tile of a row of the matrix, and the values of its step 0.
  struct lines {
    __m512 scale, zero;
  };
  PARLEY_AVX512 lines lines_of(int column, __mmask16 runs_there) const {
    const auto runs = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const auto groups =
        static_cast<__mmask16>((1U << ((__builtin_popcount(runs_there) + (1 << group_log()) - 1) >> group_log())) - 1);
    const auto pairs = _mm512_maskz_loadu_epi32(groups, m[column].scales);
    const auto each = _mm512_permutexvar_epi32(_mm512_srl_epi32(runs, _mm_cvtsi32_si128(group_log())), pairs);
    const auto scale = _mm512_castsi512_ps(_mm512_slli_epi32(each, 16));
    const auto offset = _mm512_castsi512_ps(_mm512_and_si512(each, _mm512_set1_epi32(~0xFFFF)));
    return {scale, _mm512_fnmadd_ps(_mm512_set1_ps(8), scale, offset)};
  }

  /// Adds the products of the next tile, or of the last `left` inputs if there are fewer.
  template<bool vnni, bool whole>
  PARLEY_AVX512 void add(std::int64_t left) {
    constexpr int height = std::min(count, 2); // rows whose sums fit into the registers
    const auto runs = whole ? tile_runs : left / run;
#pragma GCC unroll 1
    for (int top = 0; top < count; top += height) add_rows<vnni, whole, height>(top, runs);
  }

  /// Adds those of `height` rows from `top` on.
  template<bool vnni, bool whole, int height>
  PARLEY_AVX512 void add_rows(int top, std::int64_t runs) {
    const auto there = static_cast<__mmask16>((1U << runs) - 1);
    const auto low_bits = _mm512_set1_epi8(15);
    __m512i upper[height][columns], lower[height][columns]; // sums of the products with either byte
    for (int r = 0; r < height; ++r)
      for (int c = 0; c < columns; ++c) upper[r][c] = lower[r][c] = _mm512_setzero_si512();
#pragma GCC unroll 1
    for (std::int64_t w = 0; w < words; ++w) {
      __m512i front[columns], back[columns]; // the steps of the first half of each run, and of the other
      for (int c = 0; c < columns; ++c) {
        const auto* steps = m[c].steps + w * runs * word;
        if (top == 0) _mm_prefetch(steps + ahead, _MM_HINT_T0);
        const auto pairs = whole ? _mm512_loadu_si512(steps) : _mm512_maskz_loadu_epi32(there, steps);
        front[c] = _mm512_and_si512(pairs, low_bits);
        back[c] = _mm512_and_si512(_mm512_srli_epi16(pairs, 4), low_bits);
      }
      for (int r = 0; r < height; ++r) {
        const auto* from = x[top + r].planes + w * fixed_rows::planes_of_word;
        const auto upper_front = _mm512_load_si512(&from[0]), upper_back = _mm512_load_si512(&from[1]),
                   lower_front = _mm512_load_si512(&from[2]), lower_back = _mm512_load_si512(&from[3]);
        for (int c = 0; c < columns; ++c) {
          upper[r][c] = add_products<vnni>(add_products<vnni>(upper[r][c], front[c], upper_front), back[c], upper_back);
          lower[r][c] = add_products<vnni>(add_products<vnni>(lower[r][c], front[c], lower_front), back[c], lower_back);
        }
      }
    }
    for (int c = 0; c < columns; ++c) {
      if (top == 0) _mm_prefetch(m[c].scales + (2 * tile_runs >> group_log()), _MM_HINT_T0);
      const auto of = lines_of(c, there);
      for (int r = 0; r < height; ++r) {
        const auto& row = x[top + r];
        const auto exact = _mm512_add_epi32(_mm512_slli_epi32(upper[r][c], 8), lower[r][c]);
        const auto scale = _mm512_mul_ps(of.scale, _mm512_maskz_loadu_ps(there, row.scales));
        auto& sum = sums[top + r][c];
        sum = _mm512_fmadd_ps(of.zero, _mm512_maskz_loadu_ps(there, row.sums), sum);
        sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), scale, sum);
      }
    }
  }

  void advance() {
    for (auto& of : x) of.planes += fixed_rows::planes_of_tile, of.scales += step / run, of.sums += step / run;
    for (auto& of : m) of.steps += step / 2, of.scales += 2 * step / run >> group_log();
  }
};

template<bool vnni>
PARLEY_AVX512 void fast_product(const fixed_rows& x, const int4_rows& matrix, std::int64_t out, float* to,
                                std::int64_t stride) {
  if (out < columns) return plain_product(x, matrix, out, to, stride);
  for_columns(out, [&](std::int64_t column, std::int64_t by) PARLEY_AVX512 {
    const int4_rows m[columns] = {matrix.from(column), matrix.from(column + by), matrix.from(column + 2 * by),
                                  matrix.from(column + 3 * by)};
    std::int64_t row = 0;
    for (; row + 4 <= x.rows(); row += 4)
      block_of<vnni, int4_block<4>>(x, row, m, to + row * stride + column, by, stride);
    for (; row < x.rows(); ++row) block_of<vnni, int4_block<1>>(x, row, m, to + row * stride + column, by, stride);
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
