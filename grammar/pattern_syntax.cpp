#include "grammar/pattern_syntax.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

namespace parley::grammar::syntax {
namespace {

constexpr char32_t last_character = 0x10FFFF;
constexpr std::size_t most_bytes = 4096;
constexpr int most_depth = 32;
constexpr std::uint32_t most_repeats = 1000;

const ranges digits{{'0', '9'}};
const ranges letters{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const ranges narrow_space{{'\t', '\r'}, {' ', ' '}};
const ranges wide_space{{'\t', '\r'},     {0x1C, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
                        {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                        {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const ranges line_ends{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

ranges all_but(ranges of) {
  std::ranges::sort(of);
  ranges out;
  char32_t next = 0;
  for (const auto& [low, high] : of) {
    if (low > next) out.emplace_back(next, static_cast<char32_t>(low - 1));
    next = std::max(next, static_cast<char32_t>(high + 1));
  }
  if (next <= last_character) out.emplace_back(next, last_character);
  return out;
}

node characters(ranges set) {
  return {kind::characters, std::move(set)};
}

int hex_of(char32_t c) {
  if (c >= '0' && c <= '9') return static_cast<int>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<int>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<int>(c - 'A' + 10);
  return -1;
}

class parser {
public:
  explicit parser(std::string_view text) : text_(text) {}

  node run() {
    auto out = choice(0);
    if (!done()) throw unreadable("has a ) without a (");
    return out;
  }

private:
  bool done() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }

  /// A character of UTF-8, which the JSON around it has checked.
  char32_t next() {
    if (done()) throw unreadable("ends too early");
    const auto first = static_cast<unsigned char>(text_[at_++]);
    if (first < 0x80) return first;
    const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    char32_t out = first & (0x3F >> more);
    for (int i = 0; i < more && !done(); ++i) out = out << 6 | (static_cast<unsigned char>(text_[at_++]) & 0x3F);
    return out;
  }

  node choice(int depth) {
    if (depth > most_depth) throw unreadable("is nested too deep");
    node out{kind::choice};
    out.parts.push_back(sequence(depth));
    while (take("|")) out.parts.push_back(sequence(depth));
    return out.parts.size() == 1 ? std::move(out.parts[0]) : out;
  }

  node sequence(int depth) {
    node out{kind::sequence};
    while (!done() && peek() != '|' && peek() != ')') out.parts.push_back(repeated(atom(depth)));
    return out;
  }

  node repeated(node of) {
    std::uint32_t least = 0, most = 0;
    const auto begin = at_;
    if (take("*")) {
      most = unlimited;
    } else if (take("+")) {
      least = 1, most = unlimited;
    } else if (take("?")) {
      most = 1;
    } else if (!counted(least, most)) {
      return of;
    }
    if (of.what == kind::begin || of.what == kind::end) throw unreadable("repeats an anchor");
    take("?"); // lazy or not, the strings are the same
    if (peek() == '*' || peek() == '+' || peek() == '?') throw unreadable("has a quantifier of a quantifier");
    if (least > most) throw unreadable("has a range out of order: " + std::string(text_.substr(begin, at_ - begin)));
    node out{kind::repeat, {}, {}, least, most};
    out.parts.push_back(std::move(of));
    return out;
  }

  std::optional<std::uint32_t> count() {
    if (peek() < '0' || peek() > '9') return std::nullopt;
    std::uint32_t out = 0;
    while (peek() >= '0' && peek() <= '9') {
      out = out * 10 + static_cast<std::uint32_t>(text_[at_++] - '0');
      if (out > most_repeats) throw unreadable("repeats something more than 1000 times");
    }
    return out;
  }

  /// What begins with { and is no count is text.
  bool counted(std::uint32_t& least, std::uint32_t& most) {
    const auto begin = at_;
    if (!take("{")) return false;
    const auto low = count();
    const bool comma = take(",");
    const auto high = comma ? count() : low;
    if (!low || !take("}")) {
      at_ = begin;
      return false;
    }
    least = *low;
    most = high.value_or(unlimited);
    return true;
  }

  node atom(int depth) {
    if (take("^")) return {kind::begin};
    if (take("$")) return {kind::end};
    if (take(".")) return characters(all_but(line_ends));
    if (take("[")) return characters(set());
    if (take("(")) return group(depth);
    if (take("\\")) {
      ranges out;
      escape(false, out);
      return characters(std::move(out));
    }
    if (peek() == '*' || peek() == '+' || peek() == '?') throw unreadable("has a quantifier of nothing");
    const auto c = next();
    return characters({{c, c}});
  }

  node group(int depth) {
    if (take("?")) {
      if (take("<") && peek() != '=' && peek() != '!') {
        while (!done() && peek() != '>') ++at_;
        if (!take(">")) throw unreadable("has a name without its end");
      } else if (!take(":")) {
        throw unreadable("has lookaround or flags, which are not followed");
      }
    }
    auto out = choice(depth + 1);
    if (!take(")")) throw unreadable("has a ( without a )");
    return out;
  }

  ranges set() {
    const bool negative = take("^");
    ranges out;
    while (!take("]")) {
      const auto low = member(out);
      if (!low) continue;
      if (peek() != '-' || peek(1) == ']' || peek(1) == '\0') {
        out.emplace_back(*low, *low);
        continue;
      }
      ++at_;
      const auto high = member(out);
      if (!high) { // as in [a-\d]
        out.emplace_back(*low, *low);
        out.emplace_back('-', '-');
        continue;
      }
      if (*low > *high) throw unreadable("has a range out of order");
      out.emplace_back(*low, *high);
    }
    return negative ? all_but(std::move(out)) : out;
  }

  /// A character of a set; nothing, if a class like \d was added to `out`.
  std::optional<char32_t> member(ranges& out) {
    if (!take("\\")) return next();
    ranges read;
    if (!escape(true, read)) {
      out.insert(out.end(), read.begin(), read.end());
      return std::nullopt;
    }
    return read[0].first;
  }

  char32_t hexadecimal(int size) {
    char32_t out = 0;
    for (int i = 0; i < size; ++i) {
      const auto digit = hex_of(next());
      if (digit < 0) throw unreadable("has an escape that is no number");
      out = out * 16 + static_cast<char32_t>(digit);
    }
    return out;
  }

  char32_t unicode() {
    if (take("{")) {
      char32_t out = 0;
      while (!take("}")) {
        out = out * 16 + hexadecimal(1);
        if (out > last_character) throw unreadable("has an escape beyond Unicode");
      }
      return out;
    }
    const auto high = hexadecimal(4);
    if (high < 0xD800 || high > 0xDFFF) return high;
    if (high < 0xDC00 && take("\\u")) {
      const auto low = hexadecimal(4);
      if (low >= 0xDC00 && low <= 0xDFFF) return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    }
    throw unreadable("has half a character");
  }

  /// What follows a backslash. Whether it is one character.
  bool escape(bool in_set, ranges& out) {
    const auto c = next();
    const auto one = [&](char32_t is) {
      out = {{is, is}};
      return true;
    };
    switch (c) {
    case 'd': out = digits; return false;
    case 'D': out = all_but(digits); return false;
    case 'w': out = letters; return false;
    case 'W': out = all_but(letters); return false;
    case 's': out = narrow_space; return false;
    case 'S': out = all_but(wide_space); return false;
    case 't': return one('\t');
    case 'n': return one('\n');
    case 'v': return one('\v');
    case 'f': return one('\f');
    case 'r': return one('\r');
    case '0':
      if (peek() >= '0' && peek() <= '9') throw unreadable("has an octal escape");
      return one(0);
    case 'x': return one(hexadecimal(2));
    case 'u': return one(unicode());
    case 'c': {
      const auto letter = next();
      if ((letter | 0x20) < 'a' || (letter | 0x20) > 'z') throw unreadable("has an unknown escape");
      return one(letter & 0x1F);
    }
    case 'b':
      if (in_set) return one('\b');
      [[fallthrough]];
    case 'B': throw unreadable("has word boundaries, which are not followed");
    case 'k': throw unreadable("has back references, which are not followed");
    case 'p':
    case 'P': throw unreadable("has Unicode properties, which are not followed");
    default: break;
    }
    if (c >= '1' && c <= '9') throw unreadable("has back references, which are not followed");
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z' && c < 0x80) throw unreadable("has an unknown escape");
    return one(c);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

} // namespace

node parse(std::string_view text) {
  if (text.size() > most_bytes) throw unreadable("has more than 4096 bytes");
  return parser(text).run();
}

} // namespace parley::grammar::syntax
