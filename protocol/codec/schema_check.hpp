#pragma once

#include "protocol/json/field_reader.hpp"

#include <cstddef>
#include <string_view>

namespace parley::protocol {

inline constexpr std::size_t max_schema_bytes = 64u << 10;

/// Whether a schema allows objects, by its `type`; true if it has none.
bool may_be_object(json::value schema);

/// Checks a schema of objects; `text` is the schema without escapes that JSON does not need. Fails if it is too long or not
/// of objects, and, with `strict`, if a keyword in it cannot be honoured, which the error names by its path
/// (docs/protocol.md 3.8).
void check_schema(field_reader& in, const field& schema, bool strict, std::string_view text);

} // namespace parley::protocol
