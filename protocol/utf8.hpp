#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace parley::protocol::utf8 {

inline constexpr std::string_view replacement = "\xEF\xBF\xBD"; ///< U+FFFD

/// Bytes of the well-formed sequence (Unicode table 3-7) that `text` starts with; 0 if it starts with none.
std::size_t sequence_length(std::string_view text);

/// Whether all of `text` is well-formed.
bool valid(std::string_view text);

/// Appends a code point below 0x110000 that is no surrogate.
void append(std::uint32_t code_point, std::string& out);

/// At most `bytes` of well-formed `text`, cut between code points.
std::string_view truncate(std::string_view text, std::size_t bytes);

} // namespace parley::protocol::utf8
