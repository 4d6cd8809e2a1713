#include "grammar/number_range.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace parley::grammar {
namespace {

constexpr auto none = number_range::none;
constexpr std::uint8_t places = 15;

constexpr auto powers = [] {
  std::array<int128, 36> out{};
  int128 value = 1;
  for (auto& each : out) {
    each = value;
    value *= 10;
  }
  return out;
}();
constexpr int128 one = powers[places];

/// Both are not negative.
int128 round_up(int128 value, int128 to) {
  return (value + to - 1) / to * to;
}

/// Appends the last `size` digits.
void append_digits(int128 value, std::size_t size, std::string* out) {
  if (!out) return;
  const auto at = out->size();
  out->append(size, '0');
  for (auto i = size; i-- > 0; value /= 10) (*out)[at + i] = static_cast<char>('0' + static_cast<int>(value % 10));
}

std::uint8_t digits_of(std::uint64_t value) {
  std::uint8_t out = 0;
  for (; value > 0; value /= 10) ++out;
  return out;
}

/// The bounds of a number's magnitude.
struct span {
  int128 low, high;
  bool empty() const { return low > high; }
};

span magnitudes(const number_range& of, bool negative) {
  return negative ? span{std::max<int128>(-of.high, 0), -of.low} : span{std::max<int128>(of.low, 0), of.high};
}

/// With `more` digits before the point: from which integer to which.
span wholes(const number_prefix& of, std::uint8_t more) {
  if (of.digits == 0) return {more == 1 ? 0 : powers[more - 1u], powers[more] - 1};
  return {of.mantissa * powers[more], of.mantissa * powers[more] + powers[more] - 1};
}

/// Some digits after the point, when those before it make an integer in [from, to].
std::size_t behind_point(span within, span integers, std::uint8_t most_places, std::uint8_t more, std::string* out) {
  for (std::uint8_t n = 1; n <= most_places; ++n) {
    const auto grid = powers[places - n];
    const auto value = round_up(std::max(within.low, integers.low * one), grid);
    if (value > std::min(within.high, integers.high * one + one - grid)) continue;
    append_digits(value / one, more, out);
    if (out) *out += '.';
    append_digits(value / grid, n, out);
    return std::size_t{more} + 1 + n;
  }
  return none;
}

std::size_t rest_of_whole(const number_range& range, const number_prefix& of, span within, std::string* out) {
  const bool zero = of.digits == 1 && of.mantissa == 0;
  const std::uint8_t least = of.digits == 0 ? 1 : 0;
  const std::uint8_t most = zero ? 0 : static_cast<std::uint8_t>(number_range::most_digits - of.digits);
  const span integers{round_up(within.low, one) / one, within.high / one};
  for (auto more = least; more <= most; ++more) {
    const auto reach = wholes(of, more);
    const auto value = round_up(std::max(reach.low, integers.low), range.step);
    if (value > std::min(reach.high, integers.high)) continue;
    append_digits(value, more, out);
    return more;
  }
  if (range.whole) return none;
  for (auto more = least; more <= most; ++more) {
    auto reach = wholes(of, more);
    if (reach.low * one > within.high || (reach.high + 1) * one <= within.low) continue;
    if (reach.low == 0) { // the digit before the point is no significant one
      if (const auto bytes = behind_point(within, {0, 0}, places, more, out); bytes != none) return bytes;
      reach.low = 1;
    }
    const auto significant = of.digits + more;
    if (reach.low > reach.high || significant >= number_range::most_significant) continue;
    const auto left = static_cast<std::uint8_t>(number_range::most_significant - significant);
    if (const auto bytes = behind_point(within, reach, left, more, out); bytes != none) return bytes;
  }
  return none;
}

std::size_t rest_of_fraction(const number_prefix& of, span within, std::string* out) {
  const auto significant = digits_of(of.mantissa);
  if (significant > number_range::most_significant || of.places > places) return none;
  const auto unit = powers[places - of.places];
  const auto value = of.mantissa * unit;
  const auto most = std::min<int>(places - of.places, number_range::most_significant - significant);
  for (int more = of.places == 0 ? 1 : 0; more <= most; ++more) {
    const auto grid = powers[static_cast<std::size_t>(places - of.places - more)];
    const auto next = round_up(std::max(within.low, value), grid);
    if (next > std::min(within.high, value + unit - grid)) continue;
    append_digits(next / grid, static_cast<std::size_t>(more), out);
    return static_cast<std::size_t>(more);
  }
  return none;
}

} // namespace

bool number_range::holds(const decimal& value) const {
  if (whole && !value.whole()) return false;
  const auto at = in_units(value);
  if (at.value < low || at.value > high || (!at.exact && at.value + 1 > high)) return false;
  return step == 1 || (at.exact && at.value % (one * step) == 0);
}

std::size_t number_range::rest(const number_prefix& of, std::string* out) const {
  const auto within = magnitudes(*this, of.negative);
  if (within.empty() || of.digits > most_digits) return none;
  return of.point ? rest_of_fraction(of, within, out) : rest_of_whole(*this, of, within, out);
}

} // namespace parley::grammar
