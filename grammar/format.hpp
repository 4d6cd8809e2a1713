#pragma once

#include <string_view>

namespace parley::grammar {

/// An expression whose strings are all of that `format` of JSON Schema, nearly all of those that people write among them; null if
/// there is none.
const char* pattern_of_format(std::string_view name);

} // namespace parley::grammar
