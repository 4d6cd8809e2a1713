#pragma once

#include "grammar/rules.hpp"
#include "grammar/schema_facts.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace parley::grammar {

/// Where a part of a document is: ".properties.x".
std::string path_of(const json_value& document, const json_value& part);

/// Turns schemas into rules. A value obeys a set of schemas; each set that is met becomes a choice, once, so that schemas may refer to
/// themselves, and `allOf`, references and keywords beside them are sets that grow.
class schema_reader {
public:
  /// Appends to `rules`, whose first choice is `any`. `work`: what all may still cost.
  schema_reader(rule_set& rules, std::int64_t& work) : rules_(rules), work_(work) {}

  /// The choice of the values that obey the document, of objects only if asked. With `objection()`, parts of it are not honoured.
  choice_id read(const json_value& document, bool objects_only);

  /// The first thing that cannot be honoured.
  const std::optional<objection>& found() const { return found_; }
  /// It was too large, so that the choice is of no use.
  bool too_large() const { return too_large_; }

  // Sets whose values would obey two branches of a `oneOf`; there must be none.
  struct overlap {
    choice_id values;
    const json_value* schema;
  };
  const std::vector<overlap>& overlaps() const { return overlaps_; }

  void object(const json_value& schema, std::string_view keyword, std::string what);

  /// The rules whose literals are still to be found: values that some `enum` allows, to be compared with everything else.
  struct enumeration {
    rule_id rule;
    std::vector<const json_value*> values; ///< that every `enum` of the set allows
  };
  const std::vector<enumeration>& enumerations() const { return enumerations_; }

  struct choice_of_choices {
    const json_value* schema; ///< with the branches
    std::vector<choice_id> branches;
  };
  const std::map<choice_id, choice_of_choices>& unions() const { return unions_; }

private:
  /// A schema of a set; `picked`: the branch of its `anyOf` or `oneOf` that is in the set, too.
  struct member {
    const json_value* schema;
    const json_value* picked;
    auto operator<=>(const member&) const = default;
  };
  using schema_set = std::vector<member>; ///< ascending

  struct task {
    choice_id into;
    schema_set set;
  };

  bool pay(std::size_t cost);
  std::optional<schema_set> close(std::span<const member> of);
  struct closing {
    schema_set into{};
    std::set<const json_value*> seen{};
    std::vector<const json_value*> path{};
  };
  bool close_over(const json_value& schema, closing& state);
  choice_id choice_of(std::span<const member> of);
  choice_id choice_of(const std::vector<const json_value*>& of);
  void work_on(const task& of);
  bool branch(const task& of);
  schema_set with_branch(const schema_set& of, std::size_t index, const json_value& branch);
  bool leads_to(const json_value& from, const json_value& to, const schema_set& within);
  void check_overlaps(const schema_set& of, std::size_t index, const std::vector<json_value>& branches);

  void make_rule(const task& of);
  void read_numbers(std::span<const schema_facts* const> all, rule& into);
  void read_strings(std::span<const schema_facts* const> all, std::span<const member> set, rule& into);
  void read_arrays(std::span<const schema_facts* const> all, rule& into);
  void read_objects(std::span<const schema_facts* const> all, std::span<const member> set, rule& into);
  void read_others(std::span<const schema_facts* const> all, std::span<const member> set,
                   const std::vector<std::string>& named, const std::optional<automaton::table>& names, rule& into);
  std::optional<automaton::table> read_names(std::span<const schema_facts* const> all, std::span<const member> set);
  bool read_enumeration(std::span<const schema_facts* const> all, rule_id number);
  std::uint16_t add_automaton(const automaton::table& of);

  rule_set& rules_;
  std::int64_t& work_;
  const json_value* document_ = nullptr;
  std::unique_ptr<facts_reader> facts_; ///< of the document
  std::map<schema_set, choice_id> known_;
  std::vector<task> tasks_;
  std::vector<overlap> overlaps_;
  std::vector<enumeration> enumerations_;
  std::map<choice_id, choice_of_choices> unions_;
  std::optional<objection> found_;
  bool too_large_ = false;
};

} // namespace parley::grammar
