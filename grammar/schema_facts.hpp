#pragma once

#include "grammar/automaton.hpp"
#include "grammar/json_value.hpp"
#include "grammar/number_range.hpp"
#include "grammar/pattern.hpp"
#include "grammar/rules.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parley::grammar {

/// Why a schema cannot be honoured.
struct objection {
  std::string path; ///< of the keyword in the schema: ".properties.x.pattern"
  std::string what; ///< "is not supported"
};

/// What the keywords of one schema say of a value, each by itself.
struct schema_facts {
  std::uint8_t types = every_type;
  bool typed = false;     ///< it says so itself
  std::uint8_t about = 0; ///< types that its keywords are about
  bool plain = false;     ///< it says something itself, not only by references, `allOf`, `anyOf` and `oneOf`

  const json_value* reference = nullptr; ///< the schema that `$ref` names
  const std::vector<json_value>* all_of = nullptr;
  const std::vector<json_value>* any_of = nullptr;
  const std::vector<json_value>* one_of = nullptr;
  const std::vector<json_value>* values = nullptr; ///< `enum`
  const json_value* value = nullptr;               ///< `const`

  bool whole = false; ///< numbers are integers
  std::optional<number_range> range{};

  std::uint32_t least_characters = 0, most_characters = unbounded;
  std::vector<automaton::table> patterns{};

  bool has_properties = false;
  std::map<std::string_view, const json_value*> properties{};
  std::vector<std::pair<automaton, const json_value*>> pattern_properties{};
  const json_value* additional = nullptr;
  const json_value* names = nullptr; ///< `propertyNames`
  std::vector<std::string_view> required{};
  std::uint32_t least_members = 0, most_members = unbounded;

  const std::vector<json_value>* first_items = nullptr;
  const json_value* items = nullptr;
  std::uint32_t least_items = 0, most_items = unbounded;
};

/// Reads the keywords of schemas within one document, each once.
class facts_reader {
public:
  using objector = std::function<void(const json_value& schema, std::string_view keyword, std::string what)>;

  /// `object` is told what is not honoured; what it is told of is left out. Costs are counted down from `work`.
  facts_reader(const json_value& document, objector object, std::int64_t& work)
      : document_(document), object_(std::move(object)), work_(work) {}

  /// `schema` is an object of the document.
  const schema_facts& of(const json_value& schema);

private:
  struct reading; // the members of one schema

  const pattern& strings_of(const std::string& expression);

  const json_value& document_;
  const objector object_;
  std::int64_t& work_;
  std::map<const json_value*, schema_facts> known_;
  std::map<std::string, pattern> patterns_;
};

} // namespace parley::grammar
