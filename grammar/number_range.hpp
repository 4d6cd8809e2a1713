#pragma once

#include "grammar/decimal.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace parley::grammar {

/// What has been written of a number.
struct number_prefix {
  bool negative = false;
  bool point = false;         ///< it has one
  std::uint8_t digits = 0;    ///< before the point
  std::uint8_t places = 0;    ///< behind it
  std::uint64_t mantissa = 0; ///< all digits
};

/// The numbers between two bounds, or the integers among them that are multiples of one. They are written without exponents, with at most
/// 18 digits before the point, and with at most 15 in all if there is a point: a double holds these exactly enough that no two are the same.
struct number_range {
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  static constexpr std::uint8_t most_digits = 18, most_significant = 15;

  int128 low; ///< in units of 10^-15, included
  int128 high;
  bool whole = false;    ///< integers only
  std::int64_t step = 1; ///< of integers: multiples of this

  bool holds(const decimal& value) const;

  /// The bytes of a short continuation that makes the number one of these, which is appended to `out` if that is not null; `none` if there is none.
  std::size_t rest(const number_prefix& of, std::string* out) const;
};

} // namespace parley::grammar
