#include "grammar/json_places.hpp"
#include "grammar/json_state.hpp"

namespace parley::grammar {
namespace {

// A number without bounds has few digits before its point and in its exponent, so that every reader can hold it.
constexpr std::uint32_t most_digits = 20, most_exponent_digits = 2;

} // namespace

number_prefix json_state::prefix_of(const frame& at) {
  return {at.low != 0, at.at != 0, static_cast<std::uint8_t>(at.length), static_cast<std::uint8_t>(at.position),
          at.seen};
}

void json_state::begin_number(const rule& of, frame made, unsigned char byte) {
  if (byte != '-' && !places::is_digit(byte)) return;
  if (of.range == 0xFFFF) {
    made.kind = part::number;
    made.at = byte == '-' ? places::minus : byte == '0' ? places::zero : places::whole;
    made.length = 1;
    return add(made);
  }
  made.kind = part::bounded;
  if (byte != '-') return take_bounded(made, byte);
  made.low = 1;
  if (rules().ranges[of.range].rest(prefix_of(made), nullptr) != number_range::none) add(made);
}

/// `seen` has the digits, `length` how many are before the point, `position` how many behind it, `low` whether it is negative.
void json_state::take_bounded(frame at, unsigned char byte) {
  const auto& range = rules().ranges[rule_of(at).range];
  const auto fits = [&] { return range.rest(prefix_of(at), nullptr) != number_range::none; };
  if (places::is_digit(byte)) {
    if (at.at == 0 && at.length == 1 && at.seen == 0) return; // nothing follows a leading zero
    if (at.length >= number_range::most_digits || at.position > number_range::most_significant) return;
    at.seen = at.seen * 10 + (byte - '0');
    if (at.at == 0)
      ++at.length;
    else
      ++at.position;
    if (fits()) add(at);
    return;
  }
  if (byte == '.') {
    if (at.at != 0 || at.length == 0 || range.whole) return;
    at.at = 1;
    if (fits()) add(at);
    return;
  }
  if (at.length == 0 || (at.at != 0 && at.position == 0) || range.rest(prefix_of(at), nullptr) != 0) return;
  go_on_after(at, byte);
}

void json_state::take_number(frame at, unsigned char byte) {
  const auto go = [&](places::number to) {
    at.at = to;
    at.length = 1; // digits here, if it began with one
    add(at);
  };
  const auto one_more = [&](std::uint32_t most) {
    if (++at.length <= most) add(at);
  };
  const bool real = !rule_of(at).whole, digit = places::is_digit(byte);
  const bool sign = byte == '-' || byte == '+', letter = byte == 'e' || byte == 'E';
  switch (at.at) {
  case places::minus:
    if (digit) go(byte == '0' ? places::zero : places::whole);
    return;
  case places::whole:
    if (digit) return one_more(most_digits);
    [[fallthrough]];
  case places::zero:
    if (real && byte == '.') return go(places::point);
    if (real && letter) return go(places::exponent);
    break;
  case places::point:
    if (digit) go(places::fraction);
    return;
  case places::fraction:
    if (digit) return add(at);
    if (letter) return go(places::exponent);
    break;
  case places::exponent:
    if (sign) return go(places::exponent_sign);
    [[fallthrough]];
  case places::exponent_sign:
    if (digit) go(places::power);
    return;
  default:
    if (digit) return one_more(most_exponent_digits);
    break;
  }
  go_on_after(at, byte);
}

} // namespace parley::grammar
