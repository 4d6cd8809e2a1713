#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace parley::grammar {

__extension__ using int128 = __int128;

/// An exact decimal number: `digits` × 10^`exponent`.
struct decimal {
  bool negative = false;
  std::string digits{}; ///< without zeros at either end; empty = 0
  std::int64_t exponent = 0;

  bool whole() const { return exponent >= 0; }
  bool operator==(const decimal&) const = default;
};

/// `text` is a JSON number.
decimal read_decimal(std::string_view text);

/// A number in units of 10^-15, rounded down, and clamped to ±10^34. `exact`: the conversion lost nothing.
struct scaled {
  int128 value;
  bool exact;
};
scaled in_units(const decimal& of);

} // namespace parley::grammar
