#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace parley::base::utf8 {

inline constexpr std::string_view replacement = "\xEF\xBF\xBD"; ///< U+FFFD
inline constexpr char32_t replacement_character = 0xFFFD;

/// The first character of some bytes.
struct decoded {
  char32_t code;    ///< U+FFFD for an invalid part
  std::size_t size; ///< bytes taken, at least 1
  bool valid;
};

/// Reads the first character of non-empty bytes. An invalid part is the longest prefix of a possible character
/// (Unicode's "maximal subpart"), as in Rust's from_utf8_lossy.
decoded decode(std::string_view bytes);

/// Length of the well-formed sequence (Unicode table 3-7) at the start of `text`; 0 if there is none.
std::size_t sequence_length(std::string_view text);

/// Whether all of `text` is well-formed.
bool valid(std::string_view text);

/// Appends a Unicode scalar value, which must be below 0x110000 and no surrogate (not checked).
void append(char32_t code, std::string& out);

/// At most `bytes` bytes of the well-formed `text`, cut between code points.
std::string_view truncate(std::string_view text, std::size_t bytes);

/// The bytes as well-formed text, with U+FFFD for each invalid part.
std::string lossy(std::string_view bytes);

} // namespace parley::base::utf8
