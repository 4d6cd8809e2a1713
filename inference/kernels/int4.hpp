#pragma once

#include "inference/kernels/simd.hpp"

#include <algorithm>
#include <cstdint>

namespace parley::inference::cpu {

/// Rows of numbers of 4 bits, in groups of a multiple of 32: a number is (step - 8) * scale + offset, with the scale and
/// the offset of its group and a step of 0 to 15.
///
/// A run is 32 numbers in 16 bytes: byte i holds step i in its lower half and step i + 16 in its upper half. A tile is up to 16
/// runs, stored as the first four bytes of each run, then the second four bytes of each, and so on. A vector of 16 lanes then
/// holds a different run in each lane, and a scale is needed only after four vectors. Only the last tile of a row may have
/// fewer runs.
struct int4_rows {
  static constexpr std::int64_t run = 32, run_bytes = run / 2, tile_runs = 16, tile = tile_runs * run;
  static constexpr std::int64_t word = 4, words = run_bytes / word; ///< bytes, and how many a run has

  /// Where the bytes of a run lie in its row.
  struct place {
    std::int64_t first; ///< of byte 0
    std::int64_t apart; ///< distance of two words

    std::int64_t of(std::int64_t byte) const { return first + byte / word * apart + byte % word; }
  };
  /// Of the run that begins at this input, in a row of `in`.
  static place place_of(std::int64_t input, std::int64_t in) {
    const auto begin = input / tile * tile;
    return {begin / 2 + (input - begin) / run * word, std::min(tile, in - begin) / run * word};
  }

  const std::uint8_t* steps; ///< [rows, in / 2], in tiles
  const bfloat16* scales;    ///< [rows, in / group, 2]: scale, offset
  std::int64_t in, group;

  int4_rows from(std::int64_t row) const { return {steps + row * in / 2, scales + row * (in / group) * 2, in, group}; }
};

/// Chooses scale, offset and steps of a group of `count` numbers, a multiple of 32 up to 256, so that the sum of the squared
/// errors is small, in which a number counts more the larger it is: the range is narrowed in a few steps, and the line
/// through the numbers is fitted anew for each. `steps` gets one byte a number.
void quantize_group(const float* numbers, std::int64_t count, std::uint8_t* steps, bfloat16& scale, bfloat16& offset);

/// steps [rows, in], a multiple of 32, one byte each, into tiles: to [rows, in / 2].
void pack(const std::uint8_t* steps, std::int64_t rows, std::int64_t in, std::uint8_t* to);

/// The first `count` rows, [count, in].
void unpack(const int4_rows& matrix, std::int64_t count, float* to);
void unpack(const int4_rows& matrix, std::int64_t count, bfloat16* to);

} // namespace parley::inference::cpu
