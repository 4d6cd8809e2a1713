#include "base/utf8.hpp"
#include "protocol/json/document.hpp"

#include <charconv>
#include <cmath>

namespace parley::protocol::json {
namespace {

std::uint32_t hex4(std::string_view digits) {
  std::uint32_t out = 0;
  std::from_chars(digits.data(), digits.data() + 4, out, 16);
  return out;
}

bool is_high(std::uint32_t unit) {
  return unit >= 0xD800 && unit < 0xDC00;
}
bool is_low(std::uint32_t unit) {
  return unit >= 0xDC00 && unit < 0xE000;
}

/// Decodes `\uXXXX` at `at`, with a low surrogate after it, and appends the result; returns the position after them.
std::size_t append_unit(std::string_view raw, std::size_t at, std::string& out) {
  auto unit = hex4(raw.substr(at + 2));
  at += 6;
  if (is_high(unit) && raw.substr(at, 2) == "\\u") {
    if (auto low = hex4(raw.substr(at + 2)); is_low(low)) {
      base::utf8::append(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00), out);
      return at + 6;
    }
  }
  if (is_high(unit) || is_low(unit)) {
    out += base::utf8::replacement;
  } else {
    base::utf8::append(unit, out);
  }
  return at;
}

char control(char letter) {
  switch (letter) {
  case 'b': return '\b';
  case 'f': return '\f';
  case 'n': return '\n';
  case 'r': return '\r';
  case 't': return '\t';
  default: return letter;
  }
}

const node& node_of(value at) {
  return at.in().nodes[at.index()];
}

} // namespace

value root(const document& of) {
  return of.nodes.empty() ? value() : value(of, 0);
}

std::string unescape(value string) {
  auto raw = string.raw();
  if (!string.escaped()) return std::string(raw);
  std::string out;
  out.reserve(raw.size());
  for (std::size_t at = 0; at < raw.size();) {
    auto slash = std::min(raw.find('\\', at), raw.size());
    out.append(raw, at, slash - at);
    at = slash;
    if (at == raw.size()) break;
    if (raw[at + 1] == 'u') {
      at = append_unit(raw, at, out);
    } else {
      out.push_back(control(raw[at + 1]));
      at += 2;
    }
  }
  return out;
}

std::optional<std::string> unescape(value string, std::size_t most_bytes) {
  // An escape is at most six times as long as the character it encodes.
  if (string.raw().size() > (string.escaped() ? 6 : 1) * most_bytes) return std::nullopt;
  auto text = unescape(string);
  if (text.size() > most_bytes) return std::nullopt;
  return text;
}

bool means(value string, std::string_view text) {
  if (!string.escaped()) return string.raw() == text;
  const auto decoded = unescape(string, text.size());
  return decoded && *decoded == text;
}

value member(value object, std::string_view name) {
  value found;
  if (!object.is(kind::object)) return found;
  auto& nodes = object.in().nodes;
  auto end = node_of(object).next;
  for (auto key = object.index() + 1; key < end; key = nodes[key + 1].next)
    if (means(value(object.in(), key), name)) found = value(object.in(), key + 1);
  return found;
}

std::size_t count_members(value object, std::size_t at_most) {
  std::size_t count = 0;
  if (!object.is(kind::object)) return count;
  auto& nodes = object.in().nodes;
  const auto end = node_of(object).next;
  for (auto key = object.index() + 1; key < end && count < at_most; key = nodes[key + 1].next) ++count;
  return count;
}

std::vector<std::pair<value, value>> members(value object, std::size_t at_most) {
  std::vector<std::pair<value, value>> out;
  if (!object.is(kind::object)) return out;
  auto& nodes = object.in().nodes;
  const auto end = node_of(object).next;
  for (auto key = object.index() + 1; key < end && out.size() < at_most; key = nodes[key + 1].next)
    out.emplace_back(value(object.in(), key), value(object.in(), key + 1));
  return out;
}

std::vector<value> elements(value array, std::size_t at_most) {
  std::vector<value> out;
  if (!array.is(kind::array)) return out;
  auto end = node_of(array).next;
  for (auto at = array.index() + 1; at < end && out.size() < at_most; at = array.in().nodes[at].next)
    out.emplace_back(array.in(), at);
  return out;
}

std::optional<double> to_double(value number) {
  if (!number.is(kind::number)) return {};
  double out = 0;
  auto raw = number.raw();
  auto [end, failure] = std::from_chars(raw.data(), raw.data() + raw.size(), out);
  if (failure != std::errc() || !std::isfinite(out)) return {};
  return out;
}

std::optional<std::int64_t> to_integer(value number) {
  if (!number.is(kind::number)) return {};
  auto raw = number.raw();
  std::int64_t out = 0;
  auto [end, failure] = std::from_chars(raw.data(), raw.data() + raw.size(), out);
  if (end == raw.data() + raw.size() && failure == std::errc()) return out;
  constexpr double exact = 9007199254740992.0; // 2^53: a double can represent every integer up to here
  auto real = to_double(number);
  if (!real || std::trunc(*real) != *real || std::abs(*real) > exact) return {};
  return static_cast<std::int64_t>(*real);
}

} // namespace parley::protocol::json
