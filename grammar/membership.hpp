#pragma once

#include "grammar/json_value.hpp"
#include "grammar/rules.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace parley::grammar {

/// The values that the `enum`s of a rule allow, where it has any.
using enumerated = std::map<rule_id, std::vector<const json_value*>>;

/// Whether the schemas behind a rule or a choice allow a value. Costs are counted down from `work`.
bool holds(const rule_set& in, const enumerated& values, choice_id of, const json_value& value, std::int64_t& work);
/// The same for one rule, but its own `enum`s.
bool holds_beside_values(const rule_set& in, const enumerated& values, const rule& of, const json_value& value,
                         std::int64_t& work);

} // namespace parley::grammar
