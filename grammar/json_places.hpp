#pragma once

#include <cstdint>
#include <string_view>

// Where in a value a text has come (`json_state`).
namespace parley::grammar::places {

// In an object or array: after its bracket, a comma, a comma and a space, in a key, after it, after the colon, after the colon and a
// space, after a value.
enum container : std::uint8_t { first, comma, comma_spaced, key, key_over, colon, colon_spaced, next };

// In a string: anywhere, after a backslash, before the four digits of \u.
enum text : std::uint8_t { plain, escape, digit_1, digit_2, digit_3, digit_4 };

// In a number without bounds.
enum number : std::uint8_t { minus, zero, whole, point, fraction, exponent, exponent_sign, power };

inline constexpr std::string_view words[] = {"false", "null", "true"};

inline bool is_digit(unsigned char byte) {
  return byte >= '0' && byte <= '9';
}
inline std::uint64_t bit(std::size_t index) {
  return std::uint64_t{1} << index;
}

} // namespace parley::grammar::places
