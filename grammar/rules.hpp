#pragma once

#include "grammar/automaton.hpp"
#include "grammar/number_range.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

// What values may be: rules, and choices between them. A choice refers to rules and a rule to choices by number, so that a schema may
// refer to itself.
namespace parley::grammar {

/// Types that a value may have, as bits. A number is an integer, too, where `whole` does not forbid the others.
enum type : std::uint8_t { object = 1, array = 2, string = 4, number = 8, boolean = 16, null = 32, every_type = 63 };

using choice_id = std::uint16_t;
using rule_id = std::uint16_t;
inline constexpr choice_id any = 0; ///< the choice that every value obeys
inline constexpr std::uint16_t no_automaton = 0xFFFF;
inline constexpr std::uint32_t unbounded = std::numeric_limits<std::uint32_t>::max();

/// Bytes of a shortest value, or nearly, and how many objects and arrays are nested in it. There is none if `bytes` is `unbounded`.
struct extent {
  std::uint32_t bytes = unbounded;
  std::uint32_t height = 0;

  bool none() const { return bytes == unbounded; }
  bool operator==(const extent&) const = default;
};

struct property {
  std::string key; ///< as JSON, without its opening quote
  choice_id value;
  bool required;
};

/// Members of an object that are none of its properties: those whose names are in `keys`.
struct member_class {
  std::uint16_t keys; ///< an automaton, or `no_automaton`: all names
  choice_id value;
};

/// A value is one of the literals, or has one of the types and obeys what is said of it.
struct rule {
  std::uint8_t types = every_type;
  std::uint8_t given_types =
      every_type; ///< what its schemas allow: without `type`, a rule has only the types that its keywords are about
  std::vector<std::string> literals{}; ///< as JSON, ascending

  std::uint16_t strings = no_automaton; ///< then the lengths are in it
  std::uint32_t least_characters = 0, most_characters = unbounded;

  bool whole = false;           ///< numbers are integers
  std::uint16_t range = 0xFFFF; ///< of numbers; 0xFFFF = no bounds

  std::vector<property> properties{}; ///< by key, at most 64
  std::vector<member_class> others{};
  bool closed_unasked =
      false; ///< its schemas allow others: objects with properties have no others unless they are described
  std::uint32_t least_members = 0, most_members = unbounded;

  std::vector<choice_id> first_items{};
  choice_id items = any; ///< those after them
  std::uint32_t least_items = 0, most_items = unbounded;

  extent as_literal{}, as_object{}, as_array{}, as_string{}, as_number{};
};

struct choice {
  std::vector<rule_id> rules{}; ///< a value obeys at least one
  extent shortest{};
};

struct rule_set {
  std::vector<choice> choices{};
  std::vector<rule> rules{};
  std::vector<automaton> automata{};
  std::vector<number_range> ranges{};
};

inline constexpr std::uint32_t most_open = 31;           ///< objects and arrays in each other
inline constexpr std::uint32_t most_shortest = 16 << 10; ///< bytes of a shortest value

} // namespace parley::grammar
