#include "grammar/schema_reader.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace parley::grammar {
namespace {

using kind = json_value::kind;

constexpr std::size_t most_choices = 4096;
constexpr std::size_t most_properties = 64; ///< of one object: a state remembers each in a bit
constexpr std::size_t most_exclusive = 24;  ///< branches of a `oneOf`: each is compared with each
constexpr std::size_t most_automaton_states = 16'384;

const json_value nothing{kind::boolean, false};

/// Where a schema is in its document.
bool find_path(const json_value& from, const json_value& what, std::string& path) {
  if (&from == &what) return true;
  const auto size = path.size();
  for (const auto& value : from.members) {
    const auto& name = value.name;
    path += '.' + name;
    if (find_path(value, what, path)) return true;
    path.resize(size);
  }
  for (auto i = std::size_t{0}; i < from.elements.size(); ++i) {
    path += '[' + std::to_string(i) + ']';
    if (find_path(from.elements[i], what, path)) return true;
    path.resize(size);
  }
  return false;
}

} // namespace

std::string path_of(const json_value& document, const json_value& part) {
  std::string path;
  find_path(document, part, path);
  return path;
}

void schema_reader::object(const json_value& schema, std::string_view keyword, std::string what) {
  if (found_) return;
  auto path = path_of(*document_, schema);
  if (!keyword.empty()) path.append(".").append(keyword);
  found_ = objection{std::move(path), std::move(what)};
}

bool schema_reader::pay(std::size_t cost) {
  work_ -= static_cast<std::int64_t>(cost);
  if (work_ >= 0 && rules_.choices.size() < most_choices) return true;
  if (!std::exchange(too_large_, true) && !found_) found_ = objection{"", "is too large with what it refers to"};
  return false;
}

choice_id schema_reader::read(const json_value& document, bool objects_only) {
  static const json_value an_object = [] {
    json_value out{kind::object};
    out.members.push_back({kind::string, false, "object", "type"});
    return out;
  }();
  document_ = &document;
  facts_ = std::make_unique<facts_reader>(
      document, [this](const auto& schema, auto keyword, auto what) { object(schema, keyword, std::move(what)); },
      work_);
  std::vector<const json_value*> root{&document};
  if (objects_only) root.push_back(&an_object);
  const auto out = choice_of(root);
  for (auto i = std::size_t{0}; i < tasks_.size() && !too_large_; ++i) {
    const auto next = tasks_[i];
    work_on(next);
  }
  // A choice between choices has the rules of all of them.
  for (auto& [id, branches] : unions_) {
    std::set<choice_id> seen{id};
    auto open = branches.branches;
    auto& into = rules_.choices[id].rules;
    while (!open.empty() && pay(1)) {
      const auto one = open.back();
      open.pop_back();
      if (!seen.insert(one).second) continue;
      if (const auto more = unions_.find(one); more != unions_.end())
        open.insert(open.end(), more->second.branches.begin(), more->second.branches.end());
      else
        into.insert(into.end(), rules_.choices[one].rules.begin(), rules_.choices[one].rules.end());
    }
    std::ranges::sort(into);
    into.erase(std::unique(into.begin(), into.end()), into.end());
  }
  pay(0);
  return out;
}

/// Adds a schema with what must hold together with it. False if no value obeys it.
bool schema_reader::close_over(const json_value& schema, closing& state) {
  if (schema.is(kind::boolean)) return schema.truth;
  if (!schema.is(kind::object)) return true; // told where it was found
  if (std::ranges::find(state.path, &schema) != state.path.end()) {
    object(schema, "$ref", "refers to itself");
    return true;
  }
  if (!pay(8) || !state.seen.insert(&schema).second) return true;
  const auto& facts = facts_->of(schema);
  const bool known = std::ranges::any_of(state.into, [&](const member& m) { return m.schema == &schema; });
  if (!known && (facts.plain || facts.any_of || facts.one_of)) state.into.push_back({&schema, nullptr});
  state.path.push_back(&schema);
  bool good = !facts.reference || close_over(*facts.reference, state);
  if (facts.all_of)
    for (const auto& each : *facts.all_of) good = good && close_over(each, state);
  state.path.pop_back();
  return good;
}

std::optional<schema_reader::schema_set> schema_reader::close(std::span<const member> of) {
  closing state;
  for (const auto& each : of)
    if (each.picked) state.into.push_back(each);
  for (const auto& each : of)
    if (!each.picked && !close_over(*each.schema, state)) return std::nullopt;
  std::ranges::sort(state.into);
  return std::move(state.into);
}

choice_id schema_reader::choice_of(const std::vector<const json_value*>& of) {
  std::vector<member> set;
  set.reserve(of.size());
  for (const auto* each : of) set.push_back({each, nullptr});
  return choice_of(set);
}

choice_id schema_reader::choice_of(std::span<const member> of) {
  if (too_large_) return any;
  const auto set = close(of);
  if (set && set->empty()) return any;
  const auto [place, fresh] =
      known_.try_emplace(set.value_or(schema_set{}), static_cast<choice_id>(rules_.choices.size()));
  if (!fresh) return place->second;
  if (!pay(16)) return any;
  rules_.choices.emplace_back();
  if (set) tasks_.push_back({place->second, *set}); // otherwise it has no rules: no value obeys it
  return place->second;
}

void schema_reader::work_on(const task& of) {
  if (!branch(of)) make_rule(of);
}

/// Puts a branch of the first `anyOf` or `oneOf` into each of several sets. False if there is none left.
bool schema_reader::branch(const task& of) {
  for (auto i = std::size_t{0}; i < of.set.size(); ++i) {
    if (of.set[i].picked) continue;
    const auto& at = *of.set[i].schema;
    const auto& facts = facts_->of(at);
    if (!facts.any_of && !facts.one_of) continue;
    if (facts.any_of && facts.one_of) object(at, "oneOf", "is not supported beside anyOf");
    const auto& branches = facts.any_of ? *facts.any_of : *facts.one_of;
    auto& into = unions_[of.into];
    into.schema = &at;
    for (const auto& each : branches) {
      if (!pay(of.set.size())) return true;
      // What leads back to the choice, with nothing in between, has no values of its own.
      if (!facts.plain || !leads_to(each, at, of.set)) into.branches.push_back(choice_of(with_branch(of.set, i, each)));
    }
    if (!facts.any_of) check_overlaps(of.set, i, branches);
    return true;
  }
  return false;
}

/// A schema that says nothing else is not needed any more when a branch is in the set.
schema_reader::schema_set schema_reader::with_branch(const schema_set& of, std::size_t index,
                                                     const json_value& branch) {
  auto out = of;
  if (facts_->of(*of[index].schema).plain)
    out[index].picked = &branch;
  else
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(index));
  out.push_back({&branch, nullptr});
  return out;
}

/// Whether `from` holds only if `to` does, by the branches that were picked.
bool schema_reader::leads_to(const json_value& from, const json_value& to, const schema_set& within) {
  closing state;
  if (!close_over(from, state)) return false;
  for (auto i = std::size_t{0}; i < state.into.size(); ++i) {
    const auto* reached = state.into[i].schema;
    if (reached == &to) return true;
    for (const auto& each : within)
      if (each.schema == reached && each.picked) close_over(*each.picked, state);
  }
  return false;
}

void schema_reader::check_overlaps(const schema_set& of, std::size_t index, const std::vector<json_value>& branches) {
  const auto& at = *of[index].schema;
  if (branches.size() > most_exclusive) return object(at, "oneOf", "has more than 24 schemas; anyOf may have more");
  for (auto i = std::size_t{0}; i < branches.size(); ++i)
    for (auto j = i + 1; j < branches.size(); ++j) {
      auto set = with_branch(of, index, branches[i]);
      set.push_back({&branches[j], nullptr});
      overlaps_.push_back({choice_of(set), &at});
    }
}

std::uint16_t schema_reader::add_automaton(const automaton::table& of) {
  std::size_t states = of.states();
  for (const auto& each : rules_.automata) states += each.as_table().states();
  if (states > most_automaton_states) pay(static_cast<std::size_t>(std::max<std::int64_t>(work_, 0)) + 1);
  rules_.automata.emplace_back(of, work_);
  return static_cast<std::uint16_t>(rules_.automata.size() - 1);
}

void schema_reader::make_rule(const task& of) {
  std::vector<const schema_facts*> all;
  for (const auto& each : of.set) all.push_back(&facts_->of(*each.schema));
  rule made;
  std::uint8_t about = 0;
  bool typed = false;
  for (const auto* each : all) {
    made.types &= each->types;
    about |= each->about;
    typed = typed || each->typed || each->values || each->value;
  }
  made.given_types = made.types;
  if (!typed && about != 0) made.types = about;
  if (made.types & number) read_numbers(all, made);
  if (made.types & string) read_strings(all, of.set, made);
  if (made.types & array) read_arrays(all, made);
  if (made.types & type::object) read_objects(all, of.set, made);
  const auto id = static_cast<rule_id>(rules_.rules.size());
  rules_.rules.push_back(std::move(made));
  rules_.choices[of.into].rules = {id};
  read_enumeration(all, id);
}

void schema_reader::read_numbers(std::span<const schema_facts* const> all, rule& into) {
  std::optional<number_range> range;
  for (const auto* each : all) {
    into.whole = into.whole || each->whole;
    if (!each->range) continue;
    if (!range) {
      range = each->range;
      continue;
    }
    range->low = std::max(range->low, each->range->low);
    range->high = std::min(range->high, each->range->high);
    const auto step = range->step / std::gcd(range->step, each->range->step);
    range->step =
        std::min<int128>(int128{step} * each->range->step, 1'000'000'000'000'000) == int128{step} * each->range->step
            ? step * each->range->step
            : std::int64_t{1'000'000'000'000'000'000}; // no number is a multiple
    range->whole = range->whole || each->range->whole;
  }
  if (!range) return;
  range->whole = range->whole || into.whole;
  into.range = static_cast<std::uint16_t>(rules_.ranges.size());
  rules_.ranges.push_back(*range);
}

void schema_reader::read_strings(std::span<const schema_facts* const> all, std::span<const member> set, rule& into) {
  std::optional<automaton::table> strings;
  for (auto i = std::size_t{0}; i < all.size(); ++i) {
    into.least_characters = std::max(into.least_characters, all[i]->least_characters);
    into.most_characters = std::min(into.most_characters, all[i]->most_characters);
    for (const auto& each : all[i]->patterns) {
      auto next = strings ? both(*strings, each, work_) : each;
      if (next)
        strings = std::move(next);
      else
        object(*set[i].schema, "pattern", "has too many states with other patterns");
    }
  }
  if (!strings || !pay(1)) return;
  if (into.least_characters > 0 || into.most_characters != unbounded) {
    auto bounded = of_length(*strings, into.least_characters, into.most_characters, work_);
    for (auto i = std::size_t{0}; !bounded && i < all.size(); ++i)
      if (!all[i]->patterns.empty()) object(*set[i].schema, "pattern", "has too many states with these lengths");
    if (bounded) strings = std::move(bounded);
  }
  into.strings = add_automaton(*strings);
}

void schema_reader::read_arrays(std::span<const schema_facts* const> all, rule& into) {
  std::size_t first = 0;
  for (const auto* each : all) {
    if (each->first_items) first = std::max(first, each->first_items->size());
    into.least_items = std::max(into.least_items, each->least_items);
    into.most_items = std::min(into.most_items, each->most_items);
  }
  for (auto i = std::size_t{0}; i <= first; ++i) { // the last one is for all that follow
    std::vector<const json_value*> set;
    for (const auto* each : all) {
      if (each->first_items && i < each->first_items->size())
        set.push_back(&(*each->first_items)[i]);
      else if (each->items)
        set.push_back(each->items);
    }
    const auto items = choice_of(set);
    if (i < first)
      into.first_items.push_back(items);
    else
      into.items = items;
  }
}

void schema_reader::read_objects(std::span<const schema_facts* const> all, std::span<const member> set, rule& into) {
  std::map<std::string_view, bool> names; // and whether it is required
  for (const auto* each : all) {
    for (const auto& [name, value] : each->properties) names.try_emplace(name, false);
    for (const auto name : each->required) names[name] = true;
    into.least_members = std::max(into.least_members, each->least_members);
    into.most_members = std::min(into.most_members, each->most_members);
    if (!pay(8 * (each->properties.size() + each->required.size()))) return;
  }
  if (names.size() > most_properties) {
    for (auto i = std::size_t{0}; i < all.size(); ++i)
      if (!all[i]->properties.empty() || !all[i]->required.empty())
        object(*set[i].schema, all[i]->properties.empty() ? "required" : "properties", "has more than 64 names");
    into.others.push_back({no_automaton, any});
    return;
  }
  std::vector<std::string> named;
  const auto allowed = read_names(all, set);
  const automaton allowed_names(allowed.value_or(any_string()), work_);
  for (const auto& [name, required] : names) {
    std::vector<const json_value*> values;
    if (allowed && !allowed_names.holds(name)) values.push_back(&nothing);
    for (const auto* each : all) {
      const auto own = each->properties.find(name);
      bool known = own != each->properties.end();
      if (known) values.push_back(own->second);
      for (const auto& [keys, value] : each->pattern_properties) {
        if (!keys.holds(name)) continue;
        known = true;
        values.push_back(value);
      }
      if (!known && each->additional) values.push_back(each->additional);
    }
    named.emplace_back(name);
    into.properties.push_back({json_text(name).substr(1), choice_of(values), required});
  }
  std::ranges::sort(into.properties, {}, &property::key);
  read_others(all, set, named, allowed, into);
  if (into.others.empty() || into.least_members <= into.properties.size() + 1) return;
  for (auto i = std::size_t{0}; i < all.size(); ++i)
    if (all[i]->least_members == into.least_members)
      object(*set[i].schema, "minProperties", "asks for more members than there are properties, and one other");
}

/// The names that `propertyNames` allows; nothing = all. Of its schemas, what strings alone say is followed.
std::optional<automaton::table> schema_reader::read_names(std::span<const schema_facts* const> all,
                                                          std::span<const member> set) {
  std::optional<automaton::table> out;
  const auto allow = [&](automaton_table strings, const json_value& at) {
    if (strings && out) strings = both(*out, *strings, work_);
    if (strings)
      out = std::move(strings);
    else
      object(at, "propertyNames", "has too many states");
  };
  for (auto i = std::size_t{0}; i < all.size(); ++i) {
    if (!all[i]->names) continue;
    const auto& at = *set[i].schema;
    if (all[i]->names->is(kind::boolean)) {
      if (!all[i]->names->truth) allow(no_string(), at);
      continue;
    }
    const auto& says = facts_->of(*all[i]->names);
    if (says.reference || says.all_of || says.any_of || says.one_of) {
      object(at, "propertyNames", "is only supported without references and choices");
      continue;
    }
    if (!(says.types & string)) allow(no_string(), at);
    for (const auto& each : says.patterns) allow(each, at);
    if (says.least_characters > 0 || says.most_characters != unbounded)
      allow(of_length(any_string(), says.least_characters, says.most_characters, work_), at);
    const auto only = [&](const json_value* one, std::size_t count) {
      std::vector<std::string> names;
      for (; count-- > 0; ++one)
        if (one->is(kind::string)) names.push_back(one->text);
      const auto others = all_but(names, work_);
      allow(others ? both(complement(*others), any_string(), work_) : automaton_table{}, at);
    };
    if (says.value) only(says.value, 1);
    if (says.values) only(says.values->data(), says.values->size());
  }
  return out;
}

/// Members that are no properties, by the patterns that their names have.
void schema_reader::read_others(std::span<const schema_facts* const> all, std::span<const member> set,
                                const std::vector<std::string>& named, const std::optional<automaton::table>& names,
                                rule& into) {
  std::vector<std::pair<const automaton*, const json_value*>> patterns;
  std::vector<std::size_t> owner;
  bool closed = false, told = false;
  for (auto i = std::size_t{0}; i < all.size(); ++i) {
    closed = closed || all[i]->has_properties || !all[i]->pattern_properties.empty();
    told = told || all[i]->additional;
    for (const auto& [keys, value] : all[i]->pattern_properties) {
      patterns.emplace_back(&keys, value);
      owner.push_back(i);
    }
  }
  into.closed_unasked = closed && !told;
  if (patterns.size() > 4)
    return object(*set[owner[4]].schema, "patternProperties", "has more than 4 patterns with others");
  for (auto matched = 0u; matched < 1u << patterns.size(); ++matched) {
    if (matched == 0 && closed && !told) continue;
    std::vector<const json_value*> values;
    std::optional<automaton::table> keys;
    if (!named.empty()) {
      keys = all_but(named, work_);
      if (!keys) return object(*set[0].schema, "properties", "has names that are too long");
    }
    if (names) {
      keys = keys ? both(*keys, *names, work_) : names;
      if (!keys) return object(*set[0].schema, "properties", "has names that are too long");
    }
    for (auto i = std::size_t{0}; i < patterns.size(); ++i) {
      const bool has = matched & (1u << i);
      if (has) values.push_back(patterns[i].second);
      const auto strings = patterns[i].first->empty() ? no_string() : patterns[i].first->as_table();
      keys = both(keys.value_or(any_string()), has ? strings : complement(strings), work_);
      if (!keys) return object(*set[owner[i]].schema, "patternProperties", "has patterns with too many states");
    }
    for (auto i = std::size_t{0}; i < all.size(); ++i) {
      bool own = false;
      for (auto p = std::size_t{0}; p < patterns.size(); ++p) own = own || (owner[p] == i && (matched & (1u << p)));
      if (!own && all[i]->additional) values.push_back(all[i]->additional);
    }
    if (!pay(16)) return;
    auto automaton_number = no_automaton;
    if (keys) {
      automaton_number = add_automaton(*keys);
      if (rules_.automata.back().empty()) continue;
    }
    into.others.push_back({automaton_number, choice_of(values)});
  }
}

bool schema_reader::read_enumeration(std::span<const schema_facts* const> all, rule_id number) {
  std::optional<std::vector<const json_value*>> values;
  for (const auto* each : all) {
    std::vector<const json_value*> these;
    if (each->value) these.push_back(each->value);
    if (each->values)
      for (const auto& one : *each->values) these.push_back(&one);
    if (each->value && each->values) // a `const` beside an `enum`
      std::erase_if(these, [&](const auto* one) {
        return !same(*one, *each->value, work_) ||
               std::ranges::none_of(*each->values, [&](const auto& v) { return same(v, *one, work_); });
      });
    if (!each->value && !each->values) continue;
    if (!values) {
      values = std::move(these);
      continue;
    }
    std::erase_if(*values, [&](const auto* one) {
      return std::ranges::none_of(these, [&](const auto* other) { return same(*one, *other, work_); });
    });
  }
  if (!values || !pay(values->size())) return false;
  enumerations_.push_back({number, std::move(*values)});
  return true;
}

} // namespace parley::grammar
