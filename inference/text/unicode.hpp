#pragma once

#include <string>
#include <string_view>

namespace parley::inference::text {

/// The classes that the pre-tokenizer distinguishes: \p{L}, \p{N}, \s, the rest.
enum class character_class : unsigned char { letter, number, space, other };

/// By Unicode's general category; invalid code points are `other`.
character_class class_of(char32_t code);

/// NFC of valid UTF-8 with the tables of Unicode 9, like the reference's tokenizer. Linear time, except for sorting
/// each run of combining marks. Throws std::runtime_error if it fails.
std::string nfc(std::string_view text);

} // namespace parley::inference::text
