#pragma once

#include <string>
#include <string_view>

namespace parley::inference::text {

/// The classes that the pre-tokenizer tells apart: \p{L}, \p{N}, \s, the rest.
enum class character_class : unsigned char { letter, number, space, other };

/// By Unicode's general category; code points that are none are `other`.
character_class class_of(char32_t code);

/// NFC of valid UTF-8 with the tables of Unicode 9, as the reference's tokenizer has it; linear time but for sorting
/// each run of combining marks. Throws std::runtime_error when it can't be made.
std::string nfc(std::string_view text);

} // namespace parley::inference::text
