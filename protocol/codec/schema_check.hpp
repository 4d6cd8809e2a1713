#pragma once

#include "protocol/json/field_reader.hpp"

#include <cstddef>
#include <string_view>

namespace parley::protocol {

inline constexpr std::size_t max_schema_bytes = 64u << 10;

/// Checks a schema of objects, `text` without escapes that JSON does not need. It is too long, or not of objects; or it is `strict`, and a
/// keyword in it cannot be honoured, which is named with its path (docs/protocol.md 3.8).
void check_schema(field_reader& in, const field& schema, bool strict, std::string_view text);

} // namespace parley::protocol
