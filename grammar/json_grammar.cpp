#include "grammar/json_grammar.hpp"

#include "grammar/membership.hpp"
#include "grammar/schema_reader.hpp"
#include "grammar/shortest.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace parley::grammar {
namespace {

constexpr std::int64_t all_work = 4 * most_work;     ///< of all schemas of a grammar together
constexpr std::size_t most_literal_bytes = 4u << 20; ///< of all rules
constexpr std::size_t most_alternatives = 32;        ///< rules of a choice that one text may still obey

/// The rule and the choice of every value of these types.
choice_id add_any(rule_set& to, std::uint8_t types) {
  rule anything;
  anything.types = anything.given_types = types;
  anything.others.push_back({no_automaton, any});
  to.rules.push_back(std::move(anything));
  to.choices.push_back({{static_cast<rule_id>(to.rules.size() - 1)}, {}});
  return static_cast<choice_id>(to.choices.size() - 1);
}

std::size_t bytes_of(const std::vector<std::string>& texts) {
  std::size_t out = 0;
  for (const auto& each : texts) out += sizeof(std::string) + each.size();
  return out;
}

/// The values that obey everything else, as texts.
void find_literals(rule_set& in, const schema_reader& from, std::int64_t& work, std::size_t& bytes_left) {
  enumerated values;
  for (const auto& each : from.enumerations()) values.emplace(each.rule, each.values);
  std::map<rule_id, std::vector<std::string>> texts;
  for (const auto& [id, these] : values) {
    auto& made = texts[id];
    for (const auto* each : these) {
      if (!holds_beside_values(in, values, in.rules[id], *each, work)) continue;
      auto& text = made.emplace_back();
      append_json(*each, text);
      if (text.size() > most_shortest) made.pop_back();
    }
    std::ranges::sort(made);
    made.erase(std::unique(made.begin(), made.end()), made.end());
    const auto bytes = bytes_of(made);
    if (bytes > bytes_left || made.size() > 0xFFFF) work = -1;
    bytes_left -= std::min(bytes, bytes_left);
  }
  for (auto& [id, made] : texts) {
    in.rules[id].types = 0;
    in.rules[id].literals = std::move(made);
  }
}

/// Takes out what has no value, so that every text that fits so far can be ended.
void strip(rule_set& of) {
  const auto none = [&](choice_id id) { return of.choices[id].shortest.none(); };
  for (auto& each : of.rules) {
    const auto keep = [&](type kind, const extent& one) {
      if (one.none()) each.types &= static_cast<std::uint8_t>(~kind);
    };
    keep(object, each.as_object), keep(array, each.as_array), keep(string, each.as_string),
        keep(number, each.as_number);
    if (each.as_literal.none()) each.literals.clear();
    std::erase_if(each.properties, [&](const property& p) { return none(p.value); });
    std::erase_if(each.others, [&](const member_class& m) { return none(m.value); });
    for (auto i = std::size_t{0}; i < each.first_items.size(); ++i)
      if (none(each.first_items[i])) each.most_items = std::min(each.most_items, static_cast<std::uint32_t>(i));
    if (none(each.items))
      each.most_items = std::min(each.most_items, static_cast<std::uint32_t>(each.first_items.size()));
  }
  for (auto& each : of.choices)
    std::erase_if(each.rules, [&](auto id) { return of.rules[id].types == 0 && of.rules[id].literals.empty(); });
}

/// Adds to `into` what the other rule allows, which has other types.
void merge(rule& into, const rule& from) {
  if (from.types & string) {
    into.strings = from.strings;
    into.least_characters = from.least_characters;
    into.most_characters = from.most_characters;
    into.as_string = from.as_string;
  }
  if (from.types & number) {
    into.whole = from.whole;
    into.range = from.range;
    into.as_number = from.as_number;
  }
  if (from.types & array) {
    into.first_items = from.first_items;
    into.items = from.items;
    into.least_items = from.least_items;
    into.most_items = from.most_items;
    into.as_array = from.as_array;
  }
  if (from.types & object) {
    into.properties = from.properties;
    into.others = from.others;
    into.least_members = from.least_members;
    into.most_members = from.most_members;
    into.as_object = from.as_object;
  }
  into.types |= from.types;
  if (from.literals.empty()) return;
  into.literals.insert(into.literals.end(), from.literals.begin(), from.literals.end());
  std::ranges::sort(into.literals);
  into.literals.erase(std::unique(into.literals.begin(), into.literals.end()), into.literals.end());
  if (into.as_literal.none() || from.as_literal.bytes < into.as_literal.bytes) into.as_literal = from.as_literal;
}

/// Makes one rule of several of a choice whose types differ, so that a text obeys as few as possible at a time.
void merge_rules(rule_set& of, std::size_t& bytes_left) {
  std::map<std::vector<rule_id>, std::vector<rule_id>> known;
  for (auto& each : of.choices) {
    if (each.rules.size() < 2) continue;
    const auto [place, fresh] = known.try_emplace(each.rules);
    if (fresh) {
      std::vector<rule> merged;
      for (const auto id : each.rules) {
        const auto& one = of.rules[id];
        const auto room = std::ranges::find_if(merged, [&](const rule& m) { return !(m.types & one.types); });
        const auto bytes = bytes_of(one.literals) + (one.properties.size() + 2) * sizeof(property);
        if (bytes > bytes_left || of.rules.size() >= 0xFFF0) {
          merged.clear();
          break;
        }
        bytes_left -= bytes;
        if (room == merged.end())
          merged.push_back(one);
        else
          merge(*room, one);
      }
      for (auto& one : merged) {
        place->second.push_back(static_cast<rule_id>(of.rules.size()));
        of.rules.push_back(std::move(one));
      }
      if (merged.empty()) place->second = each.rules;
    }
    each.rules = place->second;
  }
}

/// Reads schemas into one set of rules.
class reading {
public:
  reading(rule_set& into, std::int64_t& work) : rules_(into), work_(work) { add_any(into, every_type); }

  choice_id read(const json_value& schema, bool objects_only) {
    if (schema.is(json_value::kind::object) && schema.members.empty()) return objects_only ? any_object() : any;
    const auto choices = rules_.choices.size(), rules = rules_.rules.size();
    auto work = std::min(most_work, work_);
    const auto before = work;
    schema_reader in(rules_, work);
    auto out = in.read(schema, objects_only);
    if (!in.too_large()) find_literals(rules_, in, work, bytes_left_);
    if (work < 0) in.object(schema, "", "is too large with what it refers to");
    work_ -= before - std::max<std::int64_t>(work, 0);
    if (in.too_large() || work < 0) {
      rules_.choices.resize(choices);
      rules_.rules.resize(rules);
      out = any_object();
    }
    found = in.found();
    if (found) return out;
    for (const auto& each : in.overlaps()) overlaps_.push_back(each);
    unions_ = in.unions();
    return out;
  }

  choice_id any_object() {
    if (!any_object_) any_object_ = add_any(rules_, object);
    return *any_object_;
  }

  /// To be called once, after everything was read.
  void finish() {
    find_extents(rules_);
    clean();
  }

  /// The same within what is left of the work. False if that is not enough.
  bool finish_within_work() {
    if (!find_extents(rules_, work_)) return false;
    clean();
    return true;
  }

  void clean() {
    strip(rules_);
    merge_rules(rules_, bytes_left_);
  }

  /// What only the finished rules tell.
  std::optional<objection> late_objection(choice_id root, const json_value& schema) const {
    for (const auto& each : overlaps_)
      if (!rules_.choices[each.values].shortest.none())
        return objection{path_of(schema, *each.schema) + ".oneOf",
                         "has branches of which one value may obey two: anyOf allows that"};
    for (const auto& [id, each] : unions_)
      if (rules_.choices[id].rules.size() > most_alternatives)
        return objection{path_of(schema, *each.schema) + (each.schema->find("anyOf") ? ".anyOf" : ".oneOf"),
                         "has more than 32 branches of one type"};
    if (rules_.choices[root].shortest.none()) return objection{"", "no value obeys it that could be written"};
    return std::nullopt;
  }

  std::optional<objection> found;

private:
  std::optional<choice_id> any_object_;
  rule_set& rules_;
  std::int64_t& work_; ///< of all schemas together
  std::size_t bytes_left_ = most_literal_bytes;
  std::vector<schema_reader::overlap> overlaps_;
  std::map<choice_id, schema_reader::choice_of_choices> unions_;
};

} // namespace

json_grammar::json_grammar(std::span<const form> forms) {
  auto work = all_work;
  reading in(rules_, work);
  for (const auto& each : forms) {
    const auto schema = read_json(each.schema.empty() ? R"({"type":"object"})" : each.schema);
    if (!schema) throw std::invalid_argument("a JSON schema is not JSON");
    forms_.push_back({each.head, in.read(*schema, each.object), each.tail});
  }
  in.finish();
  const bool hopeless =
      std::ranges::any_of(forms_, [&](const frame& each) { return rules_.choices[each.value].shortest.none(); });
  std::optional<choice_id> any_object;
  if (hopeless) {
    any_object = add_any(rules_, object);
    find_extents(rules_);
  }
  for (auto& each : forms_) {
    if (rules_.choices[each.value].shortest.none()) each.value = any_object.value_or(any);
    shortest_bytes_ =
        std::max(shortest_bytes_, each.head.size() + rules_.choices[each.value].shortest.bytes + each.tail.size());
  }
  std::sort(forms_.begin(), forms_.end(), [](const auto& a, const auto& b) { return a.head < b.head; });
}

std::optional<objection> object_to(std::string_view schema, bool objects_only, std::int64_t& work) {
  const auto read = read_json(schema);
  if (!read) return objection{"", "is not JSON, or nested too deep"};
  rule_set rules;
  work -= static_cast<std::int64_t>(schema.size());
  reading in(rules, work);
  const auto root = in.read(*read, objects_only);
  if (in.found) return in.found;
  if (!in.finish_within_work()) return objection{"", "is too large with what it refers to"};
  return in.late_objection(root, *read);
}

} // namespace parley::grammar
