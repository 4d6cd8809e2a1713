#include "grammar/json_state.hpp"

#include "grammar/json_places.hpp"

#include <algorithm>
#include <bit>
#include <ranges>

namespace parley::grammar {
namespace {

constexpr std::size_t most_below = 256; ///< before those that nothing refers to are dropped

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
  tops_.push_back({part::forms, 0, 0, 0, 0, none, 0, static_cast<std::uint16_t>(grammar.forms().size())});
  settle_forms();
}

bool json_state::done() const {
  return std::ranges::any_of(tops_, [](const frame& each) { return each.kind == part::over; });
}

bool json_state::feed(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [&](char b) { return feed(static_cast<unsigned char>(b)); });
}

bool json_state::feed(unsigned char byte) {
  ended_ = false;
  if (below_.size() > most_below) forget();
  for (auto i = std::size_t{0}; i < tops_.size(); ++i) take(tops_[i], byte);
  if (ended_ && next_.size() > 1) drop_same();
  if (next_.size() > most_alternatives) next_.resize(most_alternatives);
  std::swap(tops_, next_);
  next_.clear(); // copies need not have it
  settle_forms();
  return !tops_.empty();
}

void json_state::add(const frame& one) {
  if (next_.size() < 2 * most_alternatives) next_.push_back(one);
}

/// Alternatives become the same where values end: what is around them is.
void json_state::drop_same() {
  auto kept = std::size_t{0};
  for (auto i = std::size_t{0}; i < next_.size(); ++i) {
    const auto end = next_.begin() + static_cast<std::ptrdiff_t>(kept);
    if (std::find(next_.begin(), end, next_[i]) == end) next_[kept++] = next_[i];
  }
  next_.resize(kept);
}

/// What is around a value that has ended with this byte.
void json_state::add_after(const frame& ended) {
  ended_ = true;
  const auto& around = below_[ended.parent];
  if (around.kind == part::tail && grammar_->forms()[around.of].tail.empty())
    add({part::over});
  else
    add(around);
}

/// What is around a value that had ended before this byte.
void json_state::go_on_after(const frame& ended, unsigned char byte) {
  ended_ = true;
  const auto around = below_[ended.parent];
  take(around, byte);
}

std::uint16_t json_state::put_below(const frame& one) {
  const auto first = below_.end() - static_cast<std::ptrdiff_t>(std::min(below_.size(), most_alternatives));
  if (const auto same = std::find(first, below_.end(), one); same != below_.end())
    return static_cast<std::uint16_t>(same - below_.begin());
  below_.push_back(one);
  return static_cast<std::uint16_t>(below_.size() - 1);
}

/// Parents come before their children.
void json_state::forget() {
  std::vector<std::uint16_t> number(below_.size(), none);
  const auto mark = [&](const frame& of) {
    if (of.parent != none) number[of.parent] = 0;
  };
  std::ranges::for_each(tops_, mark);
  for (auto i = below_.size(); i-- > 0;)
    if (number[i] != none) mark(below_[i]);
  std::uint16_t kept = 0;
  for (auto i = std::size_t{0}; i < below_.size(); ++i) {
    if (number[i] == none) continue;
    auto one = below_[i];
    if (one.parent != none) one.parent = number[one.parent];
    number[i] = kept;
    below_[kept++] = one;
  }
  below_.resize(kept);
  below_rests_.clear();
  for (auto& each : tops_)
    if (each.parent != none) each.parent = number[each.parent];
}

/// A form whose head has come begins its value.
void json_state::settle_forms() {
  for (auto& at : tops_) {
    if (at.kind != part::forms || at.high - at.low != 1 || at.length != grammar_->forms()[at.low].head.size()) continue;
    const auto form = at.low;
    const auto tail = put_below({part::tail, 0, 0, 0, form});
    at = {part::value, 0, 0, 0, grammar_->forms()[form].value, tail};
  }
}

void json_state::take(const frame& one, unsigned char byte) {
  switch (one.kind) {
  case part::over: return;
  case part::forms: return take_form(one, byte);
  case part::tail: {
    auto at = one;
    const auto& text = grammar_->forms()[at.of].tail;
    if (at.length >= text.size() || text[at.length] != static_cast<char>(byte)) return;
    ++at.length;
    return at.length == text.size() ? add({part::over}) : add(at);
  }
  case part::value: return begin_value(one.of, one.parent, one.open, byte);
  case part::literal: return take_literal(one, byte);
  case part::word: {
    auto at = one;
    if (places::words[at.low][at.length++] != static_cast<char>(byte)) return;
    return at.length == places::words[at.low].size() ? add_after(at) : add(at);
  }
  case part::object: return take_object(one, byte);
  case part::array: return take_array(one, byte);
  case part::string: return take_string(one, byte);
  case part::number: return take_number(one, byte);
  case part::bounded: return take_bounded(one, byte);
  }
}

void json_state::take_form(frame at, unsigned char byte) {
  const auto& forms = grammar_->forms();
  const auto head = [&](auto i) -> const std::string& { return forms[i].head; };
  if (at.length == 0 && forms[at.low].head.empty()) { // what begins no other form is this one
    auto others = at;
    ++others.low;
    if (!narrow(others.low, others.high, 0, byte, head)) {
      const auto tail = put_below({part::tail, 0, 0, 0, at.low});
      return begin_value(forms[at.low].value, tail, 0, byte);
    }
    at = others;
  } else if (!narrow(at.low, at.high, at.length, byte, head)) {
    return;
  }
  ++at.length;
  add(at);
}

void json_state::begin_value(choice_id value, std::uint16_t parent, std::uint8_t open, unsigned char byte) {
  for (const auto id : rules().choices[value].rules) {
    const auto& of = rules().rules[id];
    frame made{part::literal, 0, open, 0, id, parent};
    if (!of.literals.empty()) {
      made.high = static_cast<std::uint16_t>(of.literals.size());
      take_literal(made, byte);
      made.high = 0;
    }
    begin_typed(of, made, byte);
  }
}

void json_state::begin_typed(const rule& of, frame made, unsigned char byte) {
  const auto may = [&](type kind) { return (of.types & kind) != 0; };
  const auto fits = [&](const extent& shortest) { return made.open + shortest.height <= most_open; };
  switch (byte) {
  case '{':
    if (!may(object) || !fits(of.as_object)) return;
    made.kind = part::object;
    ++made.open;
    return add(made);
  case '[':
    if (!may(array) || !fits(of.as_array)) return;
    made.kind = part::array;
    ++made.open;
    return add(made);
  case '"':
    if (!may(string)) return;
    made.kind = part::string;
    made.keys = of.strings;
    return add(made);
  case 't':
  case 'f':
  case 'n':
    if (!may(byte == 'n' ? null : boolean)) return;
    made.kind = part::word;
    made.low = byte == 't' ? 2 : byte == 'n' ? 1 : 0;
    made.length = 1;
    return add(made);
  default:
    if (may(number)) begin_number(of, made, byte);
  }
}

void json_state::take_literal(frame at, unsigned char byte) {
  const auto& all = rule_of(at).literals;
  if (narrow(at.low, at.high, at.length, byte, [&](auto i) -> const std::string& { return all[i]; })) {
    ++at.length;
    // A literal that could not go on ends here; one like 1, of 1 and 12, ends with what follows.
    if (at.low + 1 == at.high && all[at.low].size() == at.length) return add_after(at);
    return add(at);
  }
  if (at.length > 0 && all[at.low].size() == at.length) go_on_after(at, byte);
}

/// Whether the object may get this property next, and still be ended.
bool json_state::may_have(const rule& of, const frame& at, std::size_t property) const {
  const auto& one = of.properties[property];
  if (at.seen & places::bit(property)) return false;
  if (one.required) return true;
  if (at.open + rules().choices[one.value].shortest.height > most_open) return false;
  return has_room(of, at, true);
}

bool json_state::may_have_other(const rule& of, const frame& at) const {
  return !of.others.empty() && has_room(of, at, false);
}

/// Whether there is room for a member that is not required, beside those that are, and those that make it enough members. Members that are
/// no properties may have one name, so that they are surely one member, no more.
bool json_state::has_room(const rule& of, const frame& at, bool property) const {
  if (of.most_members == unbounded) return true;
  auto named = static_cast<std::uint32_t>(std::popcount(at.seen)) + (property ? 1 : 0);
  for (auto i = std::size_t{0}; i < of.properties.size(); ++i)
    if (of.properties[i].required && !(at.seen & places::bit(i))) ++named;
  const auto others = at.length + (property ? 0 : 1);
  const auto sure = named + (others > 0 ? 1 : 0);
  return named + others + (of.least_members > sure ? of.least_members - sure : 0) <= of.most_members;
}

bool json_state::may_end(const rule& of, const frame& at) const {
  for (auto i = std::size_t{0}; i < of.properties.size(); ++i)
    if (of.properties[i].required && !(at.seen & places::bit(i))) return false;
  return static_cast<std::uint32_t>(std::popcount(at.seen)) + (at.length > 0 ? 1 : 0) >= of.least_members;
}

void json_state::begin_keys(frame at) {
  const auto& of = rule_of(at);
  if (may_have_other(of, at))
    for (const auto& each : of.others) {
      if (at.open + rules().choices[each.value].shortest.height > most_open) continue;
      auto around = at;
      around.at = places::key_over;
      around.keys = each.value;
      ++around.length;
      frame key{part::string, places::plain, at.open, 0, 0, put_below(around)};
      key.keys = each.keys;
      add(key);
    }
  at.at = places::key;
  at.low = 0;
  at.high = static_cast<std::uint16_t>(of.properties.size());
  at.position = 0;
  for (auto i = std::size_t{0}; i < of.properties.size(); ++i)
    if (may_have(of, at, i)) return add(at);
}

void json_state::take_key(frame at, unsigned char byte) {
  const auto& of = rule_of(at);
  if (!narrow(at.low, at.high, at.position, byte, [&](auto i) -> const std::string& { return of.properties[i].key; }))
    return;
  ++at.position;
  auto fitting = at.low;
  while (fitting < at.high && !may_have(of, at, fitting)) ++fitting;
  if (fitting == at.high) return;
  const auto& one = of.properties[at.low];
  if (one.key.size() == at.position) { // with its closing quote, so that none begins another
    at.seen |= places::bit(at.low);
    at.at = places::key_over;
    at.keys = one.value;
    at.low = at.high = at.position = 0;
  }
  add(at);
}

void json_state::take_object(frame at, unsigned char byte) {
  const auto& of = rule_of(at);
  switch (at.at) {
  case places::first:
    if (byte == '"') return begin_keys(at);
    if (byte == '}' && may_end(of, at)) add_after(at);
    return;
  case places::next: {
    if (byte == '}' && may_end(of, at)) return add_after(at);
    if (byte != ',') return;
    bool more = may_have_other(of, at) && std::ranges::any_of(of.others, [&](const member_class& each) {
                  return at.open + rules().choices[each.value].shortest.height <= most_open;
                });
    for (auto i = std::size_t{0}; !more && i < of.properties.size(); ++i) more = may_have(of, at, i);
    if (!more) return;
    at.at = places::comma;
    return add(at);
  }
  case places::comma:
    if (byte == ' ') {
      at.at = places::comma_spaced;
      return add(at);
    }
    [[fallthrough]];
  case places::comma_spaced:
    if (byte == '"') begin_keys(at);
    return;
  case places::key: return take_key(at, byte);
  case places::key_over:
    at.at = places::colon;
    if (byte == ':') add(at);
    return;
  case places::colon:
    if (byte == ' ') {
      at.at = places::colon_spaced;
      return add(at);
    }
    [[fallthrough]];
  default: {
    const auto value = at.keys;
    at.at = places::next;
    at.keys = none;
    return begin_value(value, put_below(at), at.open, byte);
  }
  }
}

void json_state::take_array(frame at, unsigned char byte) {
  const auto& of = rule_of(at);
  const auto items = at.length < of.first_items.size() ? of.first_items[at.length] : of.items;
  const bool more = at.length < of.most_items &&
                    (at.length < of.least_items || at.open + rules().choices[items].shortest.height <= most_open);
  if (at.at == places::first || at.at == places::next) {
    if (byte == ']' && at.length >= of.least_items) return add_after(at);
    if (!more) return;
    if (at.at == places::next) {
      at.at = places::comma;
      if (byte == ',') add(at);
      return;
    }
  } else if (at.at == places::comma && byte == ' ') {
    at.at = places::comma_spaced;
    return add(at);
  }
  at.at = places::next;
  if (of.most_items != unbounded || of.least_items > 0 || !of.first_items.empty())
    ++at.length; // otherwise all items are alike
  begin_value(items, put_below(at), at.open, byte);
}

} // namespace parley::grammar
