#pragma once

#include "grammar/rules.hpp"

#include <cstdint>
#include <string>

// The shortest values of rules, or nearly the shortest.
namespace parley::grammar {

/// Finds all extents; those of what has no value, or only values that are too long or too deep, are `none`.
void find_extents(rule_set& of);

/// The same, counting its steps down from `work`. False if they did not suffice: then the extents are not all known.
bool find_extents(rule_set& of, std::int64_t& work);

/// The properties that are still missing from an object, in the order in which they should come.
struct object_so_far {
  std::uint64_t seen = 0;         ///< of its properties, as bits
  std::uint32_t others = 0;       ///< members that are none of them
  std::uint32_t room = most_open; ///< objects and arrays that may be nested in it
};

// Each appends to `out`, if that is not null, and tells the bytes.
std::uint32_t append_shortest(const rule_set& of, choice_id value, std::string* out);
std::uint32_t append_string(const rule_set& of, const rule& how, std::string* out);
std::uint32_t append_number(const rule_set& of, const rule& how, std::string* out);
std::uint32_t append_array(const rule_set& of, const rule& how, std::string* out);
/// An object whose members so far are those, from behind one of them, or from behind its bracket, to its end.
std::uint32_t append_members(const rule_set& of, const rule& how, object_so_far so_far, std::string* out);
/// The rest of an array that has so many items, from behind one of them.
std::uint32_t append_items(const rule_set& of, const rule& how, std::uint32_t items, std::string* out);

/// The property, or the class of others, that an object should get next, if it must have another; properties come first. -1 = none.
struct next_member {
  int property = -1;
  int other = -1;
};
next_member cheapest_member(const rule_set& of, const rule& how, object_so_far so_far);

} // namespace parley::grammar
