#pragma once

#include "grammar/automaton.hpp"

#include <string_view>

namespace parley::grammar {

/// Strings of a `format` of JSON Schema: nothing else, and nearly all that people write; null if there are none. Thread-safe.
const automaton::table* strings_of_format(std::string_view name);

} // namespace parley::grammar
