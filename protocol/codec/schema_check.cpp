#include "protocol/codec/schema_check.hpp"

#include "grammar/json_grammar.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace parley::protocol {

bool may_be_object(json::value schema) {
  const auto type = json::member(schema, "type");
  if (!type.given()) return true;
  const auto all = type.is(json::kind::array) ? json::elements(type, json::max_values) : std::vector{type};
  return std::ranges::any_of(
      all, [](json::value each) { return each.is(json::kind::string) && json::means(each, "object"); });
}

void check_schema(field_reader& in, const field& schema, bool strict, std::string_view text) {
  if (text.size() > max_schema_bytes) return in.fail(error_code::invalid_payload, schema.path, "more than 64 KiB");
  if (!may_be_object(schema.at))
    return in.fail(error_code::invalid_payload, schema.path, "not the schema of an object");
  if (!strict || in.trusts_schemas()) return;
  if (in.schema_work() <= 0) {
    in.schema_work() = -1; // it was asked for
    return in.fail(error_code::invalid_payload, schema.path, "is too large with the schemas before it");
  }
  if (const auto found = grammar::object_to(text, true, in.schema_work()))
    in.fail(error_code::invalid_payload, schema.path + found->path, found->what);
}

} // namespace parley::protocol
