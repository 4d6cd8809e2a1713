#pragma once

#include "grammar/rules.hpp"
#include "grammar/schema_facts.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace parley::grammar {

/// What an answer must look like: one of several forms, each a text, a JSON value and a text. docs/protocol.md 3.8 says which keywords of
/// JSON schema are honoured; what is not, is left out, and where a schema as a whole is of no use, a value may be any object. Objects with
/// `properties` have no others unless their schema describes them. Immutable; several threads may use it.
class json_grammar {
public:
  struct form {
    std::string head;
    std::string schema; ///< empty = any object
    std::string tail;
    bool object = false; ///< values are objects, whatever else the schema allows
  };

  /// No head may begin another one, except that one may be empty. Throws std::invalid_argument for a schema that is no JSON.
  explicit json_grammar(std::span<const form> forms);

  /// A form, with its schema as a choice.
  struct frame {
    std::string head;
    choice_id value;
    std::string tail;
  };

  const rule_set& rules() const { return rules_; }
  const std::vector<frame>& forms() const { return forms_; } ///< by head

  /// The most bytes that the shortest text of a form has.
  std::size_t shortest_bytes() const { return shortest_bytes_; }

private:
  rule_set rules_;
  std::vector<frame> forms_;
  std::size_t shortest_bytes_ = 0;
};

/// What reading a schema may cost, in steps of about 3 ns: enough for any that people write.
inline constexpr std::int64_t most_work = 3'000'000;

/// The first thing in a schema that cannot be honoured, if values are objects only, or of any type. Costs are counted down from `work`,
/// and where nothing is left the schema is too large.
std::optional<objection> object_to(std::string_view schema, bool objects_only, std::int64_t& work);

} // namespace parley::grammar
