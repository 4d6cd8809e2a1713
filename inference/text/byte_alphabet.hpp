#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace parley::inference::text {

/// GPT-2's printable alphabet (docs/model/thinker.md 1, step 4): each byte is written as one character in `vocab.json`
/// and `merges.txt`.
char32_t character_of(unsigned char byte);

/// The bytes that a token of the vocabulary stands for; nothing if a character is outside the alphabet.
std::optional<std::string> bytes_of(std::string_view token);

} // namespace parley::inference::text
