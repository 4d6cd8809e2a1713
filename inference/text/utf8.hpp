#pragma once

#include <string>
#include <string_view>

namespace parley::inference::text {

inline constexpr char32_t replacement_character = 0xFFFD;

/// What stands at the front of some bytes.
struct decoded_character {
  char32_t code;    ///< U+FFFD for an invalid part
  std::size_t size; ///< bytes taken, at least 1
  bool valid;
};

/// Reads one character at the front of non-empty bytes. An invalid part is the longest prefix of a possible character
/// (Unicode's "maximal subpart"), as in Rust's from_utf8_lossy.
decoded_character decode_character(std::string_view bytes);

/// `code`: a Unicode scalar value; not checked.
void append_utf8(std::string& out, char32_t code);

/// The bytes as valid UTF-8, U+FFFD for each invalid part.
std::string lossy_utf8(std::string_view bytes);

} // namespace parley::inference::text
