#pragma once

#include "inference/kernels/int4.hpp"

#include <cstdint>
#include <vector>

// Products of a few rows with a matrix in 8 or 4 bits, in integers: the rows are rounded to 16 bits. A number of the matrix is
// then multiplied as it is stored, where converting it to a float first costs more than reading it. Sums of 128 products (8
// bits) and of 32 (4 bits) are exact, and added up in float32.
namespace parley::inference::cpu {

/// Rows rounded to 16-bit integers, with one scale for every 128 numbers.
class fixed_rows {
public:
  /// `together` runs are a stretch, with one scale.
  static constexpr std::int64_t run = 32, together = 4, stretch = run * together;

  enum class layout { numbers, with_bytes };

  /// x [rows, in]. Errors are at most a 65,000th of the largest in a stretch.
  fixed_rows(const float* x, std::int64_t rows, std::int64_t in, layout as = layout::numbers);

  /// One byte of four neighbouring numbers of each run of a tile of int4_rows: what a load reads, in one line of the cache.
  struct alignas(64) plane {
    std::int8_t bytes[int4_rows::tile_runs * int4_rows::word];
  };
  static constexpr std::int64_t planes_of_word = 4, planes_of_tile = planes_of_word * int4_rows::words;

  struct row {
    const std::int16_t* numbers; ///< a multiple of `run`; those behind the last are 0
    const float* scales;         ///< of each run
    const float* sums;           ///< of each run, times its scale
    /// The same numbers split into bytes, number = 256 * upper + lower: for each word of the runs of a tile the upper bytes
    /// of the runs' first halves, those of the second halves, then the lower bytes of each. The last tile is padded with
    /// zeros. Only with layout::with_bytes.
    const plane* planes;
  };
  row at(std::int64_t row) const {
    return {numbers_.data() + row * runs_ * run, scales_.data() + row * runs_, sums_.data() + row * runs_,
            planes_.data() + row * planes_of_row()};
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t in() const { return in_; }

private:
  std::int64_t planes_of_row() const {
    return (runs_ + int4_rows::tile_runs - 1) / int4_rows::tile_runs * planes_of_tile;
  }
  void split(std::int64_t row);

  std::int64_t rows_, in_, runs_;
  std::vector<std::int16_t> numbers_;
  std::vector<plane> planes_;
  std::vector<float> scales_, sums_;
};

/// x times [out, in]^T; results of a row are adjacent, those of the next one `stride` further on. Without scales: the integers
/// of the matrix as they are. With int4, x needs its bytes.
void product(const fixed_rows& x, const std::int8_t* matrix, std::int64_t out, float* to, std::int64_t stride);
void product(const fixed_rows& x, const int4_rows& matrix, std::int64_t out, float* to, std::int64_t stride);

/// What these are on processors with AVX-512 but without VNNI, and without either; for tests. The first needs AVX-512.
void product_without_vnni(const fixed_rows& x, const std::int8_t* matrix, std::int64_t out, float* to,
                          std::int64_t stride);
void product_without_vnni(const fixed_rows& x, const int4_rows& matrix, std::int64_t out, float* to,
                          std::int64_t stride);
void plain_product(const fixed_rows& x, const std::int8_t* matrix, std::int64_t out, float* to, std::int64_t stride);
void plain_product(const fixed_rows& x, const int4_rows& matrix, std::int64_t out, float* to, std::int64_t stride);

} // namespace parley::inference::cpu
