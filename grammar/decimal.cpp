#include "grammar/decimal.hpp"

#include <algorithm>

namespace parley::grammar {
namespace {

constexpr std::int64_t places = 15, most_digits = 34;

int128 power_of_ten(std::int64_t n) {
  int128 out = 1;
  for (; n > 0; --n) out *= 10;
  return out;
}

} // namespace

decimal read_decimal(std::string_view text) {
  decimal out;
  if (text.starts_with('-')) {
    out.negative = true;
    text.remove_prefix(1);
  }
  const auto mark = text.find_first_of("eE");
  if (mark != std::string_view::npos) {
    auto power = text.substr(mark + 1);
    const bool minus = power.starts_with('-');
    if (minus || power.starts_with('+')) power.remove_prefix(1);
    for (const char c : power) out.exponent = std::min<std::int64_t>(out.exponent * 10 + (c - '0'), 1'000'000'000);
    if (minus) out.exponent = -out.exponent;
    text = text.substr(0, mark);
  }
  bool fraction = false;
  for (const char c : text) {
    if (c == '.') {
      fraction = true;
      continue;
    }
    out.digits += c;
    if (fraction) --out.exponent;
  }
  const auto first = out.digits.find_first_not_of('0');
  if (first == std::string::npos) return {};
  out.digits.erase(0, first);
  while (out.digits.back() == '0') {
    out.digits.pop_back();
    ++out.exponent;
  }
  return out;
}

scaled in_units(const decimal& of) {
  if (of.digits.empty()) return {0, true};
  const auto shift = of.exponent + places;
  const auto size = static_cast<std::int64_t>(of.digits.size()) + shift; ///< digits before the point
  if (size > most_digits) return {of.negative ? -power_of_ten(most_digits) : power_of_ten(most_digits), false};
  int128 value = 0;
  const auto kept = std::clamp<std::int64_t>(size, 0, static_cast<std::int64_t>(of.digits.size()));
  for (std::int64_t i = 0; i < kept; ++i) value = value * 10 + (of.digits[static_cast<std::size_t>(i)] - '0');
  if (shift > 0) value *= power_of_ten(shift);
  const bool exact = kept == static_cast<std::int64_t>(of.digits.size());
  if (!of.negative) return {value, exact};
  return {exact ? -value : -value - 1, exact};
}

} // namespace parley::grammar
