#include "inference/chat/json_state.hpp"

#include <algorithm>
#include <bit>
#include <ranges>

namespace parley::inference::chat {
namespace {

using rule = json_grammar::rule;

// Where in an object or array: after its bracket, a comma, a comma and a space, in a key, after it, after the colon,
// after the colon and a space, after a value.
enum place : std::uint8_t { first, comma, comma_spaced, key, key_over, colon, colon_spaced, next };

// In a string: anywhere, after a backslash, before the four digits of \u.
enum string_place : std::uint8_t { plain, escape, digit_1, digit_2, digit_3, digit_4 };

// In a number. It has few digits before its point and in its exponent, so that every reader can hold it.
constexpr std::uint32_t most_digits = 20, most_exponent_digits = 2;
enum number_place : std::uint8_t { minus, zero, whole, point, fraction, exponent, exponent_sign, power };

constexpr std::string_view words[] = {"false", "null", "true"};

bool is_digit(unsigned char byte) {
  return byte >= '0' && byte <= '9';
}
bool is_hex(unsigned char byte) {
  return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

std::uint64_t bit(std::size_t index) {
  return std::uint64_t{1} << index;
}

/// Whether the object may get another property.
bool has_room(const rule& of, std::uint64_t seen) {
  return of.properties.empty() || std::popcount(seen) < static_cast<int>(of.properties.size());
}

bool lacks_required(const rule& of, std::uint64_t seen) {
  for (auto i = std::size_t{0}; i < of.properties.size(); ++i)
    if (of.properties[i].required && !(seen & bit(i))) return true;
  return false;
}

/// Narrows [low, high) of a sorted list, which are alike in the bytes before, to what has this byte there. `text(i)` is
/// the i-th of the list.
template<class Text>
bool narrow(std::uint16_t& low, std::uint16_t& high, std::uint32_t length, unsigned char byte, Text text) {
  const auto byte_of = [&](std::uint16_t i) {
    const std::string& t = text(i);
    return length < t.size() ? static_cast<unsigned char>(t[length]) : -1; // what ends here comes first
  };
  const auto all = std::views::iota(low, high);
  const auto fitting = std::ranges::equal_range(all, int{byte}, {}, byte_of);
  if (fitting.empty()) return false;
  low = *fitting.begin();
  high = static_cast<std::uint16_t>(low + fitting.size());
  return true;
}

} // namespace

json_state::json_state(const json_grammar& grammar) : grammar_(&grammar) {
  push({part::forms, 0, 0, 0, static_cast<std::uint16_t>(grammar.forms().size())});
  settle();
}

bool json_state::push(frame next) {
  if (open_ == std::ssize(stack_)) return false;
  stack_[static_cast<std::size_t>(open_++)] = next;
  return true;
}

/// Begins and ends what takes no byte.
void json_state::settle() {
  while (open_ > 0) {
    auto& at = top();
    if (at.kind == part::forms && at.high - at.low == 1 && at.length == grammar_->forms()[at.low].head.size()) {
      begin_form(at);
      return;
    }
    if (at.kind != part::tail || at.length < grammar_->forms()[at.rule].tail.size()) return;
    --open_;
  }
}

/// The head of a form has come.
void json_state::begin_form(frame& at) {
  const auto form = at.low;
  at = {part::tail, 0, form};
  push({part::value, 0, grammar_->forms()[form].value});
}

bool json_state::feed(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [&](char b) { return feed(static_cast<unsigned char>(b)); });
}

bool json_state::feed(unsigned char byte) {
  auto outcome = step::again;
  while (outcome == step::again && open_ > 0) outcome = take(byte);
  settle();
  return outcome == step::taken;
}

json_state::step json_state::take(unsigned char byte) {
  auto& at = top();
  switch (at.kind) {
  case part::forms: return take_form(at, byte);
  case part::tail:
    return grammar_->forms()[at.rule].tail[at.length++] == static_cast<char>(byte) ? step::taken : step::refused;
  case part::value: return begin_value(at, byte);
  case part::literal: return take_literal(at, byte);
  case part::word:
    if (static_cast<unsigned char>(words[at.low][at.length]) != byte) return step::refused;
    if (++at.length == words[at.low].size()) --open_;
    return step::taken;
  case part::object: return take_object(at, byte);
  case part::array: return take_array(at, byte);
  case part::string: return take_string(at, byte);
  case part::number: return take_number(at, byte);
  }
  return step::refused;
}

json_state::step json_state::take_form(frame& at, unsigned char byte) {
  const auto& forms = grammar_->forms();
  if (at.length == 0 && forms[at.low].head.empty()) { // what begins no other form is this one
    auto others = at;
    ++others.low;
    if (!narrow(others.low, others.high, 0, byte, [&](auto i) -> const std::string& { return forms[i].head; })) {
      begin_form(at);
      return step::again;
    }
    at = others;
    ++at.length;
    return step::taken;
  }
  if (!narrow(at.low, at.high, at.length, byte, [&](auto i) -> const std::string& { return forms[i].head; }))
    return step::refused;
  ++at.length;
  return step::taken;
}

json_state::step json_state::begin_value(frame& at, unsigned char byte) {
  const auto& of = rule_of(at);
  const auto number = at.rule;
  if (!of.literals.empty()) {
    at = {part::literal, 0, number, 0, static_cast<std::uint16_t>(of.literals.size())};
    return step::again;
  }
  if ((byte == '{' || byte == '[') && number == json_grammar::any && open_ >= most_open) return step::refused;
  const auto may = [&](json_grammar::type type) { return (of.types & type) != 0; };
  if (byte == '{' && may(json_grammar::object)) {
    at = {part::object, first, number};
  } else if (byte == '[' && may(json_grammar::array)) {
    at = {part::array, first, number};
  } else if (byte == '"' && may(json_grammar::string)) {
    at = {part::string, plain, number};
  } else if ((byte == '-' || is_digit(byte)) && (may(json_grammar::number) || may(json_grammar::integer))) {
    at = {part::number, byte == '-' ? minus : byte == '0' ? zero : whole, number, 0, 0, 1};
  } else if ((byte == 't' || byte == 'f') && may(json_grammar::boolean)) {
    at = {part::word, 0, number, static_cast<std::uint16_t>(byte == 't' ? 2 : 0), 0, 1};
  } else if (byte == 'n' && may(json_grammar::null)) {
    at = {part::word, 0, number, 1, 0, 1};
  } else {
    return step::refused;
  }
  return step::taken;
}

json_state::step json_state::take_literal(frame& at, unsigned char byte) {
  const auto& all = rule_of(at).literals;
  if (narrow(at.low, at.high, at.length, byte, [&](auto i) -> const std::string& { return all[i]; })) {
    ++at.length;
    // A literal that could not go on ends here; one like 1, of 1 and 12, ends with what follows.
    if (at.low + 1 == at.high && all[at.low].size() == at.length) --open_;
    return step::taken;
  }
  if (at.length == 0 || all[at.low].size() != at.length) return step::refused;
  --open_;
  return step::again;
}

json_state::step json_state::begin_key(frame& at) {
  const auto& of = rule_of(at);
  if (!has_room(of, at.seen)) return step::refused;
  if (!of.properties.empty()) {
    at.at = key;
    at.low = 0;
    at.high = static_cast<std::uint16_t>(of.properties.size());
    at.length = 0;
    return step::taken;
  }
  at.at = key_over;
  return push({part::string, plain}) ? step::taken : step::refused;
}

json_state::step json_state::take_key(frame& at, unsigned char byte) {
  const auto& known = rule_of(at).properties;
  if (!narrow(at.low, at.high, at.length, byte, [&](auto i) -> const std::string& { return known[i].key; }))
    return step::refused;
  ++at.length;
  bool fresh = false;
  for (auto i = at.low; i < at.high; ++i) fresh = fresh || !(at.seen & bit(i));
  if (!fresh) return step::refused;
  if (known[at.low].key.size() == at.length) { // with its closing quote, so that none begins another
    at.seen |= bit(at.low);
    at.at = key_over;
  }
  return step::taken;
}

json_state::step json_state::take_object(frame& at, unsigned char byte) {
  const auto& of = rule_of(at);
  switch (at.at) {
  case first:
    if (byte == '"') return begin_key(at);
    [[fallthrough]];
  case next:
    if (byte == '}' && !lacks_required(of, at.seen)) {
      --open_;
      return step::taken;
    }
    if (at.at == first || byte != ',' || !has_room(of, at.seen)) return step::refused;
    at.at = comma;
    return step::taken;
  case comma:
    if (byte == ' ') {
      at.at = comma_spaced;
      return step::taken;
    }
    [[fallthrough]];
  case comma_spaced: return byte == '"' ? begin_key(at) : step::refused;
  case key: return take_key(at, byte);
  case key_over: at.at = colon; return byte == ':' ? step::taken : step::refused;
  case colon:
    if (byte == ' ') {
      at.at = colon_spaced;
      return step::taken;
    }
    [[fallthrough]];
  default:
    at.at = next;
    return push({part::value, 0, of.properties.empty() ? json_grammar::any : of.properties[at.low].value})
               ? step::again
               : step::refused;
  }
}

json_state::step json_state::take_array(frame& at, unsigned char byte) {
  if (byte == ']' && (at.at == first || at.at == next)) {
    --open_;
    return step::taken;
  }
  if (at.at == next) {
    at.at = comma;
    return byte == ',' ? step::taken : step::refused;
  }
  if (at.at == comma && byte == ' ') {
    at.at = comma_spaced;
    return step::taken;
  }
  at.at = next;
  return push({part::value, 0, rule_of(at).items}) ? step::again : step::refused;
}

/// In a character of several bytes, `length` is how many are missing, and the next is in [low, high].
json_state::step json_state::take_string(frame& at, unsigned char byte) {
  const auto hold = [&](std::uint32_t missing, std::uint16_t low, std::uint16_t high) {
    at.length = missing;
    at.low = low;
    at.high = high;
    return step::taken;
  };
  if (at.length > 0) return byte < at.low || byte > at.high ? step::refused : hold(at.length - 1, 0x80, 0xBF);
  switch (at.at) {
  case plain:
    if (byte == '"') {
      --open_;
      return step::taken;
    }
    if (byte == '\\') at.at = escape;
    if (byte < 0x20) return step::refused;
    if (byte < 0x80) return step::taken;
    if (byte < 0xC2 || byte > 0xF4) return step::refused;
    if (byte < 0xE0) return hold(1, 0x80, 0xBF);
    if (byte < 0xF0) return hold(2, byte == 0xE0 ? 0xA0 : 0x80, byte == 0xED ? 0x9F : 0xBF);
    return hold(3, byte == 0xF0 ? 0x90 : 0x80, byte == 0xF4 ? 0x8F : 0xBF);
  case escape:
    at.at = byte == 'u' ? std::uint8_t{digit_1} : std::uint8_t{plain};
    return std::string_view("\"\\/bfnrtu").find(static_cast<char>(byte)) == std::string_view::npos ? step::refused
                                                                                                   : step::taken;
  case digit_1: at.high = byte == 'd' || byte == 'D'; break; // D8 to DF would be half a character
  case digit_2:
    if (at.high && !(byte >= '0' && byte <= '7')) return step::refused;
    break;
  default: break;
  }
  at.at = at.at == digit_4 ? std::uint8_t{plain} : static_cast<std::uint8_t>(at.at + 1);
  return is_hex(byte) ? step::taken : step::refused;
}

json_state::step json_state::take_number(frame& at, unsigned char byte) {
  const auto go = [&](number_place to) {
    at.at = to;
    at.length = 1; // digits here, if it began with one
    return step::taken;
  };
  const auto one_more = [&](std::uint32_t most) { return ++at.length > most ? step::refused : step::taken; };
  const bool real = (rule_of(at).types & json_grammar::number) != 0;
  const bool sign = byte == '-' || byte == '+', letter = byte == 'e' || byte == 'E';
  switch (at.at) {
  case minus: return is_digit(byte) ? go(byte == '0' ? zero : whole) : step::refused;
  case whole:
    if (is_digit(byte)) return one_more(most_digits);
    [[fallthrough]];
  case zero:
    if (real && byte == '.') return go(point);
    if (real && letter) return go(exponent);
    break;
  case point: return is_digit(byte) ? go(fraction) : step::refused;
  case fraction:
    if (is_digit(byte)) return step::taken;
    if (letter) return go(exponent);
    break;
  case exponent:
    if (sign) return go(exponent_sign);
    [[fallthrough]];
  case exponent_sign: return is_digit(byte) ? go(power) : step::refused;
  default:
    if (is_digit(byte)) return one_more(most_exponent_digits);
    break;
  }
  --open_;
  return step::again;
}

std::string json_state::completion() const {
  std::string out;
  for (auto i = open_; i-- > 0;) out += rest_of(stack_[static_cast<std::size_t>(i)]);
  return out;
}

std::string json_state::rest_of(const frame& at) const {
  switch (at.kind) {
  case part::forms: {
    const auto& form = grammar_->forms()[at.low];
    return form.head.substr(at.length) + grammar_->rules()[form.value].shortest + form.tail;
  }
  case part::tail: return grammar_->forms()[at.rule].tail.substr(at.length);
  case part::value: return rule_of(at).shortest;
  case part::literal: return rule_of(at).literals[at.low].substr(at.length);
  case part::word: return std::string(words[at.low].substr(at.length));
  case part::object: return rest_of_object(at);
  case part::array:
    return at.at == comma || at.at == comma_spaced ? grammar_->rules()[rule_of(at).items].shortest + "]" : "]";
  case part::string: {
    if (at.length > 0) return std::string(1, static_cast<char>(at.low)) + std::string(at.length - 1, '\x80') + "\"";
    if (at.at == plain) return "\"";
    if (at.at == escape) return "\"\"";
    return std::string(static_cast<std::size_t>(digit_4 - at.at + 1), '0') + "\"";
  }
  case part::number: {
    const bool over = at.at == zero || at.at == whole || at.at == fraction || at.at == power;
    return over ? "" : "0";
  }
  }
  return {};
}

std::string json_state::rest_of_object(const frame& at) const {
  const auto& of = rule_of(at);
  auto seen = at.seen;
  std::string out;
  const auto value_of = [&](std::size_t i) {
    return of.properties.empty() ? grammar_->rules()[json_grammar::any].shortest
                                 : grammar_->rules()[of.properties[i].value].shortest;
  };
  const auto add_property = [&](std::size_t from) {
    while (seen & bit(from)) ++from;
    out += "\"" + of.properties[from].key + ":" + value_of(from);
    seen |= bit(from);
  };
  bool empty = at.at == first;
  switch (at.at) {
  case comma:
  case comma_spaced:
    if (of.properties.empty())
      out += R"("":)" + value_of(0);
    else
      add_property(0);
    break;
  case key: {
    auto which = static_cast<std::size_t>(at.low);
    while (seen & bit(which)) ++which;
    out += of.properties[which].key.substr(at.length) + ":" + value_of(which);
    seen |= bit(which);
    break;
  }
  case key_over: out += ":" + value_of(at.low); break;
  case colon:
  case colon_spaced: out += value_of(at.low); break;
  default: break;
  }
  for (auto i = std::size_t{0}; i < of.properties.size(); ++i) {
    if (!of.properties[i].required || (seen & bit(i))) continue;
    if (!empty) out += ',';
    empty = false;
    add_property(i);
  }
  return out + "}";
}

} // namespace parley::inference::chat
