#include "grammar/pattern.hpp"

#include "grammar/pattern_syntax.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace parley::grammar {
namespace {

using state = automaton::state;
using index = std::uint32_t;

constexpr std::size_t most_nodes = 20'000;

struct too_large : std::runtime_error {
  too_large() : std::runtime_error("too large") {}
};

/// A nondeterministic automaton over bytes. `begin` and `end` are passed only at the ends of the string.
struct machine {
  enum class pass : std::uint8_t { bytes, always, begin, end };
  struct edge {
    pass kind;
    unsigned char low, high;
    index to;
  };

  index add() {
    if (edges.size() >= most_nodes) throw too_large();
    edges.emplace_back();
    return static_cast<index>(edges.size() - 1);
  }
  void join(index from, index to, pass kind = pass::always) { edges[from].push_back({kind, 0, 0, to}); }

  std::vector<std::vector<edge>> edges;
};

std::size_t encode(char32_t c, std::array<unsigned char, 4>& out) {
  if (c < 0x80) return out[0] = static_cast<unsigned char>(c), 1;
  const auto last = [](char32_t bits) { return static_cast<unsigned char>(0x80 | (bits & 0x3F)); };
  if (c < 0x800) return out = {static_cast<unsigned char>(0xC0 | (c >> 6)), last(c)}, 2;
  if (c < 0x10000) return out = {static_cast<unsigned char>(0xE0 | (c >> 12)), last(c >> 6), last(c)}, 3;
  return out = {static_cast<unsigned char>(0xF0 | (c >> 18)), last(c >> 12), last(c >> 6), last(c)}, 4;
}

/// Builds the machine of an expression.
class assembler {
public:
  explicit assembler(machine& out) : out_(out) {}

  /// From `from` to the index returned, over what the expression matches.
  index build(const syntax::node& of, index from) {
    switch (of.what) {
    case syntax::kind::characters: return characters(of.set, from);
    case syntax::kind::begin: return passed(from, machine::pass::begin);
    case syntax::kind::end: return passed(from, machine::pass::end);
    case syntax::kind::sequence:
      for (const auto& each : of.parts) from = build(each, from);
      return from;
    case syntax::kind::choice: {
      const auto to = out_.add();
      for (const auto& each : of.parts) out_.join(build(each, from), to);
      return to;
    }
    case syntax::kind::repeat: return repeat(of, from);
    }
    return from;
  }

  index characters(const syntax::ranges& set, index from) {
    const auto to = out_.add();
    for (const auto& [low, high] : set) add_range(low, high, from, to);
    return to;
  }

private:
  index passed(index from, machine::pass kind) {
    const auto to = out_.add();
    out_.join(from, to, kind);
    return to;
  }

  index repeat(const syntax::node& of, index from) {
    for (auto i = 0u; i < of.least; ++i) from = build(of.parts[0], from);
    if (of.most == syntax::unlimited) {
      const auto loop = out_.add(), to = out_.add();
      out_.join(from, loop);
      out_.join(build(of.parts[0], loop), loop);
      out_.join(loop, to);
      return to;
    }
    const auto to = out_.add();
    for (auto i = of.least; i < of.most; ++i) {
      out_.join(from, to);
      const auto inner = out_.add(); // an expression must not be joined into the middle of another
      out_.join(from, inner);
      from = build(of.parts[0], inner);
    }
    out_.join(from, to);
    return to;
  }

  /// Splits a range of characters into sequences of ranges of bytes.
  void add_range(char32_t low, char32_t high, index from, index to) {
    if (low > high) return;
    const auto split = [&](char32_t last) {
      add_range(low, last, from, to);
      add_range(last + 1, high, from, to);
    };
    if (low < 0xD800 && high >= 0xD800) return split(0xD7FF);
    if (low >= 0xD800 && low <= 0xDFFF) return add_range(0xE000, high, from, to);
    for (const char32_t last : {char32_t{0x7F}, char32_t{0x7FF}, char32_t{0xFFFF}})
      if (low <= last && high > last) return split(last);
    if (high >= 0x80)
      for (auto i = 1; i < 4; ++i) {
        const char32_t mask = (char32_t{1} << (6 * i)) - 1;
        if ((low & ~mask) == (high & ~mask)) continue;
        if (low & mask) return split(low | mask);
        if ((high & mask) != mask) return split((high & ~mask) - 1);
      }
    std::array<unsigned char, 4> first{}, last{};
    const auto size = encode(low, first);
    encode(high, last);
    for (auto i = std::size_t{0}; i < size; ++i) {
      const auto next = i + 1 == size ? to : out_.add();
      out_.edges[from].push_back({machine::pass::bytes, first[i], last[i], next});
      from = next;
    }
  }

  machine& out_;
};

/// What `set` reaches without a byte.
void close(const machine& of, std::vector<index>& set, bool at_begin, bool at_end, std::int64_t& work) {
  std::vector<bool> in(of.edges.size());
  work -= static_cast<std::int64_t>(of.edges.size() / 64);
  for (const auto i : set) in[i] = true;
  for (auto at = std::size_t{0}; at < set.size(); ++at)
    for (const auto& e : of.edges[set[at]]) {
      --work;
      const bool open = e.kind == machine::pass::always || (e.kind == machine::pass::begin && at_begin) ||
                        (e.kind == machine::pass::end && at_end);
      if (!open || in[e.to]) continue;
      in[e.to] = true;
      set.push_back(e.to);
    }
  std::ranges::sort(set);
}

void cut_classes(const machine& of, automaton::table& out) {
  std::array<bool, 257> begins{};
  for (const auto& edges : of.edges)
    for (const auto& e : edges)
      if (e.kind == machine::pass::bytes) begins[e.low] = begins[e.high + 1u] = true;
  std::uint8_t number = 0;
  for (auto b = std::size_t{0}; b < 256; ++b) {
    if (b > 0 && begins[b]) ++number;
    out.classes[b] = number;
  }
  out.width = number + std::size_t{1};
}

automaton_table determine(const machine& of, index last, std::int64_t& work) {
  automaton::table out;
  cut_classes(of, out);
  std::vector<unsigned char> bytes;
  for (auto b = std::size_t{0}; b < 256; ++b)
    if (b == 0 || out.classes[b] != out.classes[b - 1]) bytes.push_back(static_cast<unsigned char>(b));
  std::vector<index> first{0};
  close(of, first, true, false, work);
  std::map<std::vector<index>, state> known{{first, 0}};
  std::vector<const std::vector<index>*> order{&known.begin()->first};
  for (auto at = std::size_t{0}; at < order.size(); ++at) {
    const auto& from = *order[at];
    auto ending = from;
    close(of, ending, at == 0, true, work);
    out.ends.push_back(std::ranges::binary_search(ending, last));
    for (const auto byte : bytes) {
      std::vector<index> next;
      for (const auto i : from)
        for (const auto& e : of.edges[i]) {
          --work;
          if (e.kind == machine::pass::bytes && e.low <= byte && byte <= e.high) next.push_back(e.to);
        }
      if (work < 0) return std::nullopt;
      auto target = automaton::dead;
      if (!next.empty()) {
        std::ranges::sort(next);
        next.erase(std::unique(next.begin(), next.end()), next.end());
        close(of, next, false, false, work);
        const auto [place, fresh] = known.try_emplace(std::move(next), static_cast<state>(order.size()));
        if (fresh) order.push_back(&place->first);
        target = place->second;
      }
      out.next.push_back(target);
    }
    if (order.size() > automaton::most_states) return std::nullopt;
  }
  return out;
}

} // namespace

pattern read_pattern(std::string_view text, std::int64_t& work) {
  try {
    const auto read = syntax::parse(text);
    machine all;
    assembler build(all);
    const auto anything = syntax::ranges{{0, 0x10FFFF}};
    const auto before = all.add();
    all.join(build.characters(anything, before), before);
    // A state of its own, so that what loops back into the beginning is not at the beginning.
    const auto start = all.add();
    all.join(before, start);
    const auto found = build.build(read, start);
    const auto last = all.add();
    all.join(found, last);
    all.join(build.characters(anything, last), last);
    auto strings = determine(all, last, work);
    if (!strings) return {std::nullopt, "has too many states"};
    return {std::move(strings), ""};
  } catch (const too_large&) {
    return {std::nullopt, "has too many states"};
  } catch (const syntax::unreadable& e) {
    return {std::nullopt, e.what()};
  }
}

} // namespace parley::grammar
