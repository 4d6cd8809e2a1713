#include "grammar/shortest.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace parley::grammar {
namespace {

std::uint64_t bit(std::size_t index) {
  return std::uint64_t{1} << index;
}

std::uint32_t put(std::string_view text, std::string* out) {
  if (out) *out += text;
  return static_cast<std::uint32_t>(text.size());
}

std::uint32_t append_key(const rule_set& of, const member_class& other, std::string* out) {
  auto bytes = put("\"", out);
  if (other.keys != no_automaton) {
    if (out) of.automata[other.keys].append_rest(0, *out);
    bytes += of.automata[other.keys].rest_bytes(0);
  }
  return bytes + put("\"", out);
}

/// The extent of a container that holds values, as they come.
class container {
public:
  void add(std::uint32_t bytes) { bytes_ += bytes; }
  void add(const extent& value, std::uint32_t times = 1) {
    if (value.none()) {
      bytes_ = unbounded;
      return;
    }
    bytes_ += std::uint64_t{value.bytes} * times;
    height_ = std::max(height_, value.height);
  }
  extent all() const {
    if (bytes_ > most_shortest || height_ >= most_open) return {};
    return {static_cast<std::uint32_t>(bytes_), height_ + 1};
  }

private:
  std::uint64_t bytes_ = 0;
  std::uint32_t height_ = 0;
};

extent extent_of_object(const rule_set& of, const rule& how) {
  container all;
  all.add(2u);
  object_so_far so_far;
  std::uint32_t count = 0;
  const auto add = [&](std::uint32_t key, choice_id value) {
    all.add(key + 1 + (count++ > 0 ? 1 : 0));
    all.add(of.choices[value].shortest);
  };
  for (auto i = std::size_t{0}; i < how.properties.size(); ++i) {
    const auto& each = how.properties[i];
    if (!each.required) continue;
    add(static_cast<std::uint32_t>(each.key.size() + 1), each.value);
    so_far.seen |= bit(i);
  }
  while (count < how.least_members) {
    const auto next = cheapest_member(of, how, so_far);
    if (next.property >= 0) {
      const auto& each = how.properties[static_cast<std::size_t>(next.property)];
      add(static_cast<std::uint32_t>(each.key.size() + 1), each.value);
      so_far.seen |= bit(static_cast<std::size_t>(next.property));
    } else if (next.other >= 0 && so_far.others == 0) {
      const auto& each = how.others[static_cast<std::size_t>(next.other)];
      add(append_key(of, each, nullptr), each.value);
      ++so_far.others;
    } else {
      return {};
    }
  }
  return count > how.most_members ? extent{} : all.all();
}

extent extent_of_array(const rule_set& of, const rule& how) {
  if (how.least_items > how.most_items || how.least_items > most_shortest) return {};
  container all;
  all.add(how.least_items + 1 + (how.least_items == 0 ? 1 : 0)); // brackets and commas
  const auto own = std::min<std::size_t>(how.least_items, how.first_items.size());
  for (auto i = std::size_t{0}; i < own; ++i) all.add(of.choices[how.first_items[i]].shortest);
  if (how.least_items > own) all.add(of.choices[how.items].shortest, how.least_items - static_cast<std::uint32_t>(own));
  return all.all();
}

extent extent_of_string(const rule_set& of, const rule& how) {
  if (how.strings != no_automaton && of.automata[how.strings].empty()) return {};
  if (how.least_characters > how.most_characters || how.least_characters > most_shortest) return {};
  const auto bytes = append_string(of, how, nullptr);
  return bytes > most_shortest ? extent{} : extent{bytes, 0};
}

extent extent_of_number(const rule_set& of, const rule& how) {
  const auto bytes = append_number(of, how, nullptr);
  return bytes == unbounded ? extent{} : extent{bytes, 0};
}

/// Literals are no values of a rule that could be nested, but they count with their depth.
extent extent_of_literals(const rule& how) {
  extent out;
  for (const auto& each : how.literals) {
    std::uint32_t height = 0, open = 0;
    bool quoted = false;
    for (auto i = std::size_t{0}; i < each.size(); ++i) {
      const auto c = each[i];
      if (quoted && c == '\\') ++i;
      if (c == '"') quoted = !quoted;
      if (quoted) continue;
      if (c == '{' || c == '[') height = std::max(height, ++open);
      if (c == '}' || c == ']') --open;
    }
    if (each.size() <= most_shortest && each.size() < out.bytes)
      out = {static_cast<std::uint32_t>(each.size()), height};
  }
  return out;
}

extent shortest_of(const rule& how) {
  extent out;
  const auto consider = [&](const extent& one) {
    if (one.bytes < out.bytes || (one.bytes == out.bytes && one.height < out.height)) out = one;
  };
  if (!how.literals.empty()) consider(how.as_literal);
  if (how.types & string) consider(how.as_string);
  if (how.types & number) consider(how.as_number);
  if (how.types & array) consider(how.as_array);
  if (how.types & object) consider(how.as_object);
  if (how.types & boolean) consider({4, 0});
  if (how.types & null) consider({4, 0});
  return out;
}

} // namespace

/// The steps of finding the extents of a rule's containers once.
std::int64_t steps_of(const rule& how) {
  const auto members = how.properties.size() + how.others.size();
  const auto chosen = std::min<std::size_t>(how.least_members, members);
  return static_cast<std::int64_t>(1 + how.first_items.size() + members * (1 + chosen));
}

void find_extents(rule_set& of) {
  auto work = std::numeric_limits<std::int64_t>::max();
  find_extents(of, work);
}

bool find_extents(rule_set& of, std::int64_t& work) {
  for (auto& each : of.rules) {
    if ((work -= 1 + std::min(each.least_characters, most_shortest)) < 0) return false;
    each.as_literal = extent_of_literals(each);
    each.as_string = extent_of_string(of, each);
    each.as_number = extent_of_number(of, each);
  }
  // Each round finds the shortest values of one more level.
  bool changed = true;
  for (auto round = std::uint32_t{0}; changed && round <= most_open + 1; ++round) {
    changed = false;
    for (auto& each : of.rules) {
      if ((work -= steps_of(each)) < 0) return false;
      if (each.types & object) each.as_object = extent_of_object(of, each);
      if (each.types & array) each.as_array = extent_of_array(of, each);
    }
    for (auto& each : of.choices) {
      extent best;
      work -= static_cast<std::int64_t>(each.rules.size());
      for (const auto i : each.rules) {
        const auto one = shortest_of(of.rules[i]);
        if (one.bytes < best.bytes || (one.bytes == best.bytes && one.height < best.height)) best = one;
      }
      if (best == each.shortest) continue;
      each.shortest = best;
      changed = true;
    }
  }
  return true;
}

next_member cheapest_member(const rule_set& of, const rule& how, object_so_far so_far) {
  next_member out;
  auto least = std::uint64_t{unbounded};
  for (auto i = std::size_t{0}; i < how.properties.size(); ++i) {
    const auto& each = how.properties[i];
    const auto& value = of.choices[each.value].shortest;
    if ((so_far.seen & bit(i)) || value.none() || value.height > so_far.room) continue;
    // What is required comes first, and of that the first.
    const auto cost = each.required ? i : 64 + std::uint64_t{value.bytes} + each.key.size();
    if (cost >= least) continue;
    least = cost;
    out.property = static_cast<int>(i);
  }
  for (auto i = std::size_t{0}; i < how.others.size() && out.other < 0; ++i) {
    const auto& value = of.choices[how.others[i].value].shortest;
    if (!value.none() && value.height <= so_far.room) out.other = static_cast<int>(i);
  }
  return out;
}

std::uint32_t append_string(const rule_set& of, const rule& how, std::string* out) {
  auto bytes = put("\"", out);
  if (how.strings != no_automaton) {
    if (out) of.automata[how.strings].append_rest(0, *out);
    bytes += of.automata[how.strings].rest_bytes(0);
  } else {
    if (out) out->append(how.least_characters, 'a');
    bytes += how.least_characters;
  }
  return bytes + put("\"", out);
}

std::uint32_t append_number(const rule_set& of, const rule& how, std::string* out) {
  if (how.range == 0xFFFF) return put("0", out);
  const auto& range = of.ranges[how.range];
  const auto plain = range.rest({}, nullptr);
  number_prefix minus;
  minus.negative = true;
  const auto negative = range.rest(minus, nullptr);
  if (plain == number_range::none && negative == number_range::none) return unbounded;
  if (plain != number_range::none && (negative == number_range::none || plain <= negative + 1))
    return static_cast<std::uint32_t>(range.rest({}, out));
  return put("-", out) + static_cast<std::uint32_t>(range.rest(minus, out));
}

std::uint32_t append_items(const rule_set& of, const rule& how, std::uint32_t items, std::string* out) {
  std::uint32_t bytes = 0;
  for (; items < how.least_items; ++items) {
    if (!out && items > 0 && items >= how.first_items.size()) { // all that are left are alike
      bytes += (how.least_items - items) * (1 + append_shortest(of, how.items, nullptr));
      break;
    }
    if (items > 0) bytes += put(",", out);
    bytes += append_shortest(of, items < how.first_items.size() ? how.first_items[items] : how.items, out);
  }
  return bytes + put("]", out);
}

std::uint32_t append_array(const rule_set& of, const rule& how, std::string* out) {
  return put("[", out) + append_items(of, how, 0, out);
}

std::uint32_t append_members(const rule_set& of, const rule& how, object_so_far so_far, std::string* out) {
  std::uint32_t bytes = 0;
  auto count = static_cast<std::uint32_t>(std::popcount(so_far.seen)) + so_far.others;
  auto different = static_cast<std::uint32_t>(std::popcount(so_far.seen)) + (so_far.others > 0 ? 1 : 0);
  for (;;) {
    const auto next = cheapest_member(of, how, so_far);
    const bool required = next.property >= 0 && how.properties[static_cast<std::size_t>(next.property)].required;
    if (!required && different >= how.least_members) break;
    if (next.property < 0 && (next.other < 0 || so_far.others > 0)) break;
    if (count++ > 0) bytes += put(",", out);
    ++different;
    if (next.property >= 0) {
      const auto& each = how.properties[static_cast<std::size_t>(next.property)];
      so_far.seen |= bit(static_cast<std::size_t>(next.property));
      bytes += put("\"", out) + put(each.key, out) + put(":", out) + append_shortest(of, each.value, out);
    } else {
      const auto& each = how.others[static_cast<std::size_t>(next.other)];
      ++so_far.others;
      bytes += append_key(of, each, out) + put(":", out) + append_shortest(of, each.value, out);
    }
  }
  return bytes + put("}", out);
}

std::uint32_t append_shortest(const rule_set& of, choice_id value, std::string* out) {
  const auto& shortest = of.choices[value].shortest;
  if (!out) return shortest.bytes;
  for (const auto i : of.choices[value].rules) {
    const auto& how = of.rules[i];
    const auto is = [&](type kind, const extent& one) { return (how.types & kind) && one == shortest; };
    if (!how.literals.empty() && how.as_literal == shortest)
      return put(*std::ranges::find(how.literals, shortest.bytes, [](const auto& text) { return text.size(); }), out);
    if (is(string, how.as_string)) return append_string(of, how, out);
    if (is(number, how.as_number)) return append_number(of, how, out);
    if (is(array, how.as_array)) return append_array(of, how, out);
    if (is(object, how.as_object)) return put("{", out) + append_members(of, how, {}, out);
    if (shortest == extent{4, 0} && (how.types & boolean)) return put("true", out);
    if (shortest == extent{4, 0} && (how.types & null)) return put("null", out);
  }
  return 0;
}

} // namespace parley::grammar
