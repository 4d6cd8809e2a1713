#include "grammar/json_places.hpp"
#include "grammar/json_state.hpp"
#include "grammar/shortest.hpp"

#include <algorithm>
#include <bit>

// What ends a text.
namespace parley::grammar {

std::string json_state::completion() const {
  const frame* best = nullptr;
  auto least = std::size_t{0};
  for (const auto& each : tops_)
    if (const auto bytes = rest_of_all(each, nullptr); !best || bytes < least) {
      best = &each;
      least = bytes;
    }
  std::string out;
  if (best) rest_of_all(*best, &out);
  return out;
}

std::size_t json_state::completion_bytes() const {
  auto least = std::size_t{0};
  bool any_known = false;
  for (const auto& each : tops_) {
    const auto bytes = rest_of_all(each, nullptr);
    if (!any_known || bytes < least) least = bytes;
    any_known = true;
  }
  return least;
}

std::size_t json_state::rest_of_all(const frame& at, std::string* out) const {
  auto bytes = rest_of(at, out);
  if (!out) return bytes + rest_below(at.parent);
  for (auto parent = at.parent; parent != none; parent = below_[parent].parent) bytes += rest_of(below_[parent], out);
  return bytes;
}

/// Bytes of what ends this part of `below_` and those around it: known once, for all texts that go on from here.
std::size_t json_state::rest_below(std::uint16_t at) const {
  if (at == none) return 0;
  below_rests_.resize(below_.size(), not_known);
  if (below_rests_[at] == not_known) below_rests_[at] = rest_of(below_[at], nullptr) + rest_below(below_[at].parent);
  return below_rests_[at];
}

std::size_t json_state::rest_of(const frame& at, std::string* out) const {
  const auto put = [&](std::string_view text) {
    if (out) *out += text;
    return text.size();
  };
  const auto after = [&](const std::string& whole) { return put(std::string_view(whole).substr(at.length)); };
  switch (at.kind) {
  case part::over: return 0;
  case part::forms: {
    const auto& form = grammar_->forms()[at.low];
    const auto head = after(form.head);
    const auto value = append_shortest(rules(), form.value, out);
    return head + value + put(form.tail);
  }
  case part::tail: return after(grammar_->forms()[at.of].tail);
  case part::value: return append_shortest(rules(), at.of, out);
  case part::literal: return after(rule_of(at).literals[at.low]);
  case part::word: return put(places::words[at.low].substr(at.length));
  case part::object: return rest_of_object(at, out);
  case part::array: return rest_of_array(at, out);
  case part::string: return rest_of_string(at, out);
  case part::bounded: return rules().ranges[rule_of(at).range].rest(prefix_of(at), out);
  case part::number: {
    const bool over =
        at.at == places::zero || at.at == places::whole || at.at == places::fraction || at.at == places::power;
    return over ? 0 : put("0");
  }
  }
  return 0;
}

std::size_t json_state::rest_of_array(const frame& at, std::string* out) const {
  const auto& of = rule_of(at);
  if (at.at != places::comma && at.at != places::comma_spaced) return append_items(rules(), of, at.length, out);
  const auto items = at.length < of.first_items.size() ? of.first_items[at.length] : of.items;
  const auto bytes = append_shortest(rules(), items, out);
  return bytes + append_items(rules(), of, at.length + 1, out);
}

std::size_t json_state::rest_of_object(const frame& at, std::string* out) const {
  const auto& of = rule_of(at);
  object_so_far so_far{at.seen, at.length, most_open - at.open};
  std::size_t bytes = 0;
  const auto put = [&](std::string_view text) {
    if (out) *out += text;
    bytes += text.size();
  };
  const auto add_property = [&](std::size_t which, std::size_t from) {
    const auto& one = of.properties[which];
    put(std::string_view(one.key).substr(from));
    put(":");
    bytes += append_shortest(rules(), one.value, out);
    so_far.seen |= places::bit(which);
  };
  switch (at.at) {
  case places::comma:
  case places::comma_spaced: {
    auto next = cheapest_member(rules(), of, so_far);
    if (next.property >= 0 && !may_have(of, at, static_cast<std::size_t>(next.property))) {
      next.property = -1;
      for (auto i = std::size_t{0}; i < of.properties.size() && next.property < 0; ++i)
        if (may_have(of, at, i)) next.property = static_cast<int>(i);
    }
    put("\"");
    if (next.property >= 0) {
      add_property(static_cast<std::size_t>(next.property), 0);
      break;
    }
    for (const auto& other : of.others) {
      if (at.open + rules().choices[other.value].shortest.height > most_open) continue;
      if (other.keys != no_automaton) {
        if (out) rules().automata[other.keys].append_rest(0, *out);
        bytes += rules().automata[other.keys].rest_bytes(0);
      }
      put("\":");
      bytes += append_shortest(rules(), other.value, out);
      ++so_far.others;
      break;
    }
    break;
  }
  case places::key: {
    auto which = static_cast<std::size_t>(at.low);
    while (!may_have(of, at, which)) ++which;
    add_property(which, at.position);
    break;
  }
  case places::key_over: put(":"); [[fallthrough]];
  case places::colon:
  case places::colon_spaced: bytes += append_shortest(rules(), at.keys, out); break;
  default: break;
  }
  return bytes + append_members(rules(), of, so_far, out);
}

} // namespace parley::grammar
