#include "grammar/json_places.hpp"
#include "grammar/json_state.hpp"

#include <array>

// Strings, and names of members.
namespace parley::grammar {
namespace {

constexpr std::string_view short_escapes = "\"\\/bfnrt", their_bytes = "\"\\/\b\f\n\r\t";

int hex_of(unsigned char byte) {
  if (places::is_digit(byte)) return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
  return -1;
}

/// What \u may stand for where an automaton has a say: the control characters without an escape of their own.
bool is_long_escape(unsigned char byte) {
  return byte < 0x20 && json_escape(byte).size() == 6;
}

/// The escape of fewest bytes that the automaton may have next; long ones only of [low, high).
std::string_view cheapest_escape(const automaton& of, automaton::state at, unsigned low, unsigned high, bool long_only,
                                 unsigned char& byte) {
  std::string_view best;
  auto least = std::size_t{0};
  const auto consider = [&](unsigned char one) {
    const auto to = of.step(at, one);
    if (to == automaton::dead) return;
    const auto text = json_escape(one);
    const auto total = text.size() + of.rest_bytes(to);
    if (!best.empty() && total >= least) return;
    best = text;
    least = total;
    byte = one;
  };
  for (auto c = low; c < high; ++c)
    if (!long_only || is_long_escape(static_cast<unsigned char>(c))) consider(static_cast<unsigned char>(c));
  if (long_only) return best;
  consider('"');
  consider('\\');
  return best;
}

} // namespace

void json_state::end_string(const frame& at) {
  if (at.keys != none ? rules().automata[at.keys].ends(at.position) : at.length >= rule_of(at).least_characters)
    add_after(at);
}

/// A character without an automaton is over.
void json_state::take_string(frame at, unsigned char byte) {
  if (at.at != places::plain) return take_escape(at, byte);
  if (at.missing == 0 && byte == '"') return end_string(at);
  if (at.missing == 0 && byte == '\\') {
    at.at = places::escape;
    unsigned char unused = 0;
    if (at.keys != none ? !cheapest_escape(rules().automata[at.keys], at.position, 0, 0x20, false, unused).empty()
                        : at.length < rule_of(at).most_characters)
      add(at);
    return;
  }
  if (byte < 0x20) return;
  if (at.keys != none) {
    at.position = rules().automata[at.keys].step(at.position, byte);
    if (at.position != automaton::dead) add(at);
    return;
  }
  take_character(at, byte);
}

/// In a character of several bytes, `missing` is how many are missing, and the next is in [low, high].
void json_state::take_character(frame at, unsigned char byte) {
  const auto hold = [&](std::uint8_t missing, std::uint16_t low, std::uint16_t high) {
    at.missing = missing;
    at.low = missing > 0 ? low : std::uint16_t{0};
    at.high = missing > 0 ? high : std::uint16_t{0};
    add(at);
  };
  if (at.missing > 0) {
    if (byte >= at.low && byte <= at.high) hold(static_cast<std::uint8_t>(at.missing - 1), 0x80, 0xBF);
    return;
  }
  const auto& of = rule_of(at);
  if (at.length >= of.most_characters) return;
  if (of.least_characters > 0 || of.most_characters != unbounded) ++at.length;
  if (byte < 0x80) return add(at);
  if (byte < 0xC2 || byte > 0xF4) return;
  if (byte < 0xE0) return hold(1, 0x80, 0xBF);
  if (byte < 0xF0) return hold(2, byte == 0xE0 ? 0xA0 : 0x80, byte == 0xED ? 0x9F : 0xBF);
  hold(3, byte == 0xF0 ? 0x90 : 0x80, byte == 0xF4 ? 0x8F : 0xBF);
}

/// With an automaton, each character has one spelling: \u only what has no other.
void json_state::take_escape(frame at, unsigned char byte) {
  const auto* strings = at.keys == none ? nullptr : &rules().automata[at.keys];
  const auto finish = [&](unsigned char character) {
    at.at = places::plain;
    at.seen = 0;
    if (strings) {
      at.position = strings->step(at.position, character);
      if (at.position == automaton::dead) return;
    } else if (rule_of(at).least_characters > 0 || rule_of(at).most_characters != unbounded) {
      ++at.length;
    }
    add(at);
  };
  if (at.at == places::escape) {
    if (byte != 'u') {
      const auto which = short_escapes.find(static_cast<char>(byte));
      if (which != std::string_view::npos && (!strings || byte != '/'))
        finish(static_cast<unsigned char>(their_bytes[which]));
      return;
    }
    at.at = places::digit_1;
    unsigned char unused = 0;
    if (!strings || !cheapest_escape(*strings, at.position, 0, 0x20, true, unused).empty()) add(at);
    return;
  }
  const auto digit = hex_of(byte);
  if (digit < 0) return;
  const auto value = at.seen * 16 + static_cast<std::uint64_t>(digit);
  if (strings) {
    unsigned char unused = 0;
    const auto low = static_cast<unsigned>(value) * 16;
    if (at.at != places::digit_4 && at.at != places::digit_3 && value != 0) return;
    if (at.at == places::digit_3 &&
        (value > 1 || cheapest_escape(*strings, at.position, low, low + 16, true, unused).empty()))
      return;
    if (at.at == places::digit_4 && !is_long_escape(static_cast<unsigned char>(value))) return;
  } else if (at.at == places::digit_2 && value >= 0xD8 && value <= 0xDF) {
    return; // half a character
  }
  at.seen = value;
  if (at.at == places::digit_4) return finish(strings ? static_cast<unsigned char>(value) : std::uint8_t{0});
  ++at.at;
  add(at);
}

std::size_t json_state::rest_of_string(const frame& at, std::string* out) const {
  const auto put = [&](std::string_view text) {
    if (out) *out += text;
    return text.size();
  };
  if (at.keys != none) {
    const auto& strings = rules().automata[at.keys];
    auto position = at.position;
    std::size_t bytes = 0;
    if (at.at != places::plain) {
      unsigned char byte = 0;
      const auto digits = at.at >= places::digit_1;
      const auto low = at.at == places::digit_4 ? static_cast<unsigned>(at.seen) * 16 : 0u;
      const auto text =
          cheapest_escape(strings, position, low, at.at == places::digit_4 ? low + 16 : 0x20u, digits, byte);
      bytes += put(text.substr(digits ? 2u + (at.at - places::digit_1) : 1u));
      position = strings.step(position, byte);
    }
    if (out) strings.append_rest(position, *out);
    return bytes + strings.rest_bytes(position) + put("\"");
  }
  std::size_t bytes = 0;
  auto length = at.length;
  if (at.missing > 0) {
    const std::array<char, 3> rest{static_cast<char>(at.low), '\x80', '\x80'};
    bytes += put({rest.data(), at.missing});
  } else if (at.at != places::plain) {
    bytes += at.at == places::escape ? put("\"") : put(std::string_view("0000").substr(at.at - places::digit_1));
    ++length;
  }
  const auto more = rule_of(at).least_characters - std::min(rule_of(at).least_characters, length);
  if (out) out->append(more, 'a');
  return bytes + more + put("\"");
}

} // namespace parley::grammar
