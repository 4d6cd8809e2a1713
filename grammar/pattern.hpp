#pragma once

#include "grammar/automaton.hpp"

#include <string>
#include <string_view>

namespace parley::grammar {

/// The strings in which a regular expression of ECMA-262 is found, with Unicode characters as its letters.
struct pattern {
  automaton_table strings;
  std::string objection; ///< why there are none
};

/// `\s` is white space of ASCII only, and `\S` nothing that ECMA-262 calls white space, so that all readers agree. Lookaround,
/// back references, word boundaries and Unicode properties are not followed. Takes bounded time, counted down from `work`.
pattern read_pattern(std::string_view text, std::int64_t& work);

} // namespace parley::grammar
