#include "grammar/automaton.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <utility>

namespace parley::grammar {
namespace {

using state = automaton::state;
using table = automaton::table;

constexpr auto dead = automaton::dead;
constexpr auto far = std::numeric_limits<std::uint32_t>::max();

constexpr auto escapes = [] {
  std::array<std::array<char, 6>, 32> out{};
  for (auto i = 0u; i < 32; ++i) out[i] = {'\\', 'u', '0', '0', i < 16 ? '0' : '1', "0123456789abcdef"[i % 16]};
  return out;
}();

/// One representative of each class.
std::vector<unsigned char> representatives(const table& of) {
  std::vector<unsigned char> out(of.width);
  for (auto b = 256; b-- > 0;) out[of.classes[static_cast<std::size_t>(b)]] = static_cast<unsigned char>(b);
  return out;
}

/// The bytes that `a` and `b` do not tell apart.
void common_classes(const table& a, const table& b, table& out) {
  std::map<std::pair<std::uint8_t, std::uint8_t>, std::uint8_t> known;
  for (auto i = std::size_t{0}; i < 256; ++i) {
    const std::pair key(a.classes[i], b.classes[i]);
    out.classes[i] = known.try_emplace(key, static_cast<std::uint8_t>(known.size())).first->second;
  }
  out.width = known.size();
}

/// Goes through the states that `step(key, byte)` leads to from `first`; nothing = no state.
template<class Key, class Step, class Ends>
automaton_table explore(table out, Key first, Step step, Ends ends, std::int64_t& work) {
  const auto bytes = representatives(out);
  std::map<Key, state> known{{first, 0}};
  std::vector<Key> order{first};
  for (auto at = std::size_t{0}; at < order.size(); ++at) {
    work -= static_cast<std::int64_t>(out.width);
    if (work < 0) return std::nullopt;
    const auto from = order[at];
    out.ends.push_back(ends(from));
    for (const auto byte : bytes) {
      const std::optional<Key> to = step(from, byte);
      auto target = dead;
      if (to) {
        const auto [place, fresh] = known.try_emplace(*to, static_cast<state>(order.size()));
        if (fresh) order.push_back(*to);
        target = place->second;
      }
      out.next.push_back(target);
    }
    if (order.size() > automaton::most_states) return std::nullopt;
  }
  return out;
}

bool begins_character(unsigned char byte) {
  return (byte & 0xC0) != 0x80;
}

} // namespace

std::string_view json_escape(unsigned char byte) {
  switch (byte) {
  case '"': return "\\\"";
  case '\\': return "\\\\";
  case '\n': return "\\n";
  case '\r': return "\\r";
  case '\t': return "\\t";
  case '\b': return "\\b";
  case '\f': return "\\f";
  default: break;
  }
  if (byte < 0x20) return {escapes[byte].data(), 6};
  return {};
}

automaton::automaton(const table& from, std::int64_t& work) {
  // From the ends backwards, the cheapest way first.
  const auto bytes = representatives(from);
  std::vector<std::uint32_t> cost(from.width, far);
  std::vector<unsigned char> cheapest(from.width);
  for (auto b = 0u; b < 256; ++b) {
    const auto byte = static_cast<unsigned char>((b + 'a') % 256); // letters before others
    const auto written = static_cast<std::uint32_t>(std::max<std::size_t>(1, json_escape(byte).size()));
    const auto of = from.classes[byte];
    if (written < cost[of]) {
      cost[of] = written;
      cheapest[of] = byte;
    }
  }
  std::vector<std::vector<std::pair<state, std::uint8_t>>> back(from.states());
  for (auto s = std::size_t{0}; s < from.states(); ++s)
    for (auto c = std::size_t{0}; c < from.width; ++c)
      if (const auto to = from.next[s * from.width + c]; to != dead)
        back[to].emplace_back(static_cast<state>(s), static_cast<std::uint8_t>(c));
  work -= static_cast<std::int64_t>(from.states() * from.width);
  std::vector<std::uint32_t> rest(from.states(), far);
  std::vector<unsigned char> way(from.states());
  std::priority_queue<std::pair<std::uint32_t, state>, std::vector<std::pair<std::uint32_t, state>>, std::greater<>>
      open;
  for (auto s = std::size_t{0}; s < from.states(); ++s) {
    if (!from.ends[s]) continue;
    rest[s] = 0;
    open.emplace(0, static_cast<state>(s));
  }
  while (!open.empty()) {
    const auto [bytes_left, at] = open.top();
    open.pop();
    if (bytes_left > rest[at]) continue;
    for (const auto& [before, by] : back[at]) {
      const auto total = bytes_left + cost[by];
      if (total >= rest[before]) continue;
      rest[before] = total;
      way[before] = cheapest[by];
      open.emplace(total, before);
    }
  }
  if (from.states() == 0 || rest[0] == far || work < 0) return;
  std::vector<state> number(from.states(), dead);
  auto count = state{0};
  for (auto s = std::size_t{0}; s < from.states(); ++s)
    if (rest[s] != far) number[s] = count++;
  table_.classes = from.classes;
  table_.width = from.width;
  for (auto s = std::size_t{0}; s < from.states(); ++s) {
    if (number[s] == dead) continue;
    table_.ends.push_back(from.ends[s]);
    rest_.push_back(rest[s]);
    towards_end_.push_back(way[s]);
    for (auto c = std::size_t{0}; c < from.width; ++c) {
      const auto to = from.next[s * from.width + c];
      table_.next.push_back(to == dead ? dead : number[to]);
    }
  }
}

bool automaton::holds(std::string_view text) const {
  if (empty()) return false;
  auto at = state{0};
  for (const char c : text) at = step(at, static_cast<unsigned char>(c));
  return at != dead && ends(at);
}

void automaton::append_rest(state at, std::string& out) const {
  while (rest_[at] > 0) {
    const auto byte = towards_end_[at];
    const auto escape = json_escape(byte);
    if (escape.empty())
      out += static_cast<char>(byte);
    else
      out += escape;
    at = step(at, byte);
  }
}

automaton_table both(const table& a, const table& b, std::int64_t& work) {
  table out;
  common_classes(a, b, out);
  using key = std::pair<state, state>;
  return explore(
      std::move(out), key(0, 0),
      [&](key from, unsigned char byte) -> std::optional<key> {
        const key to(a.step(from.first, byte), b.step(from.second, byte));
        if (to.first == dead || to.second == dead) return std::nullopt;
        return to;
      },
      [&](key at) { return a.ends[at.first] && b.ends[at.second]; }, work);
}

table complement(const table& of) {
  auto out = of;
  const auto other = static_cast<state>(of.states());
  for (auto&& each : out.ends) each = !each;
  for (auto& to : out.next)
    if (to == dead) to = other;
  out.ends.push_back(true);
  out.next.insert(out.next.end(), out.width, other);
  return out;
}

automaton_table all_but(std::span<const std::string> these, std::int64_t& work) {
  table known;
  for (auto b = std::size_t{0}; b < 256; ++b) known.classes[b] = static_cast<std::uint8_t>(b);
  known.width = 256;
  const auto add = [&] {
    known.ends.push_back(false);
    known.next.insert(known.next.end(), 256, dead);
    return static_cast<state>(known.ends.size() - 1);
  };
  add();
  for (const auto& each : these) {
    auto at = state{0};
    for (const char c : each) {
      const auto place = at * std::size_t{256} + static_cast<unsigned char>(c);
      if (known.next[place] == dead) {
        work -= 256;
        if (known.states() >= automaton::most_states || work < 0) return std::nullopt;
        const auto fresh = add();
        known.next[place] = fresh;
      }
      at = known.next[place];
    }
    known.ends[at] = true;
  }
  // Few bytes are told apart: those of the names.
  std::array<bool, 256> named{};
  for (const auto& each : these)
    for (const char c : each) named[static_cast<unsigned char>(c)] = true;
  table narrow;
  std::uint8_t last = 0;
  std::vector<unsigned char> first{0};
  for (auto b = std::size_t{0}; b < 256; ++b)
    if (!named[b]) first[0] = static_cast<unsigned char>(b);
  for (auto b = std::size_t{0}; b < 256; ++b) {
    narrow.classes[b] = named[b] ? ++last : std::uint8_t{0};
    if (named[b]) first.push_back(static_cast<unsigned char>(b));
  }
  narrow.width = first.size();
  narrow.ends = known.ends;
  for (auto s = std::size_t{0}; s < known.states(); ++s)
    for (const auto b : first) narrow.next.push_back(known.next[s * 256 + b]);
  return both(complement(narrow), any_string(), work);
}

automaton_table of_length(const table& of, std::uint32_t least, std::uint32_t most, std::int64_t& work) {
  const auto enough = most == far ? least : std::max(least, most); // beyond it, counts are alike
  table out;
  table starts; // bytes that begin a character and others
  for (auto b = std::size_t{0}; b < 256; ++b)
    starts.classes[b] = begins_character(static_cast<unsigned char>(b)) ? std::uint8_t{0} : std::uint8_t{1};
  common_classes(of, starts, out);
  using key = std::pair<state, std::uint32_t>;
  return explore(
      std::move(out), key(0, 0),
      [&](key from, unsigned char byte) -> std::optional<key> {
        const auto to = of.step(from.first, byte);
        auto count = from.second + (begins_character(byte) ? 1u : 0u);
        if (to == dead || count > most) return std::nullopt;
        return key(to, std::min(count, enough));
      },
      [&](key at) { return of.ends[at.first] && at.second >= least; }, work);
}

table no_string() {
  table out;
  out.next = {dead};
  out.ends = {false};
  return out;
}

/// As Unicode has it (table 3-7 of its chapter 3): no overlong forms, no halves of characters.
table any_string() {
  // States: between characters; 1, 2, 3 more bytes of any kind; after E0, ED, F0, F4.
  enum : state { between, one, two, three, after_e0, after_ed, after_f0, after_f4 };
  table out;
  out.width = 12;
  const auto set = [&](unsigned low, unsigned high, std::uint8_t to) {
    for (auto b = low; b <= high; ++b) out.classes[b] = to;
  };
  set(0x00, 0x7F, 0), set(0x80, 0x8F, 1), set(0x90, 0x9F, 2), set(0xA0, 0xBF, 3), set(0xC0, 0xC1, 4),
      set(0xC2, 0xDF, 5);
  set(0xE0, 0xE0, 6), set(0xE1, 0xEF, 7), set(0xED, 0xED, 8), set(0xF0, 0xF0, 9), set(0xF1, 0xF3, 10),
      set(0xF4, 0xF4, 11);
  set(0xF5, 0xFF, 4);
  out.ends.assign(8, false);
  out.ends[between] = true;
  out.next.assign(8 * out.width, dead);
  const auto go = [&](state from, std::initializer_list<std::size_t> by, state to) {
    for (const auto c : by) out.next[from * out.width + c] = to;
  };
  go(between, {0}, between), go(between, {5}, one), go(between, {6}, after_e0), go(between, {7}, two);
  go(between, {8}, after_ed), go(between, {9}, after_f0), go(between, {10}, three), go(between, {11}, after_f4);
  go(one, {1, 2, 3}, between), go(two, {1, 2, 3}, one), go(three, {1, 2, 3}, two);
  go(after_e0, {3}, one), go(after_ed, {1, 2}, one), go(after_f0, {2, 3}, two), go(after_f4, {1}, two);
  return out;
}

} // namespace parley::grammar
