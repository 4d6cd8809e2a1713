#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// RFC 4648, standard alphabet with padding. Strict: no URL alphabet, padding required and only at the end; white space,
// as between the lines of MIME, is for `joined` to take out. The unused bits of a padded last group are ignored: the
// schema allows them, and nothing is lost.
namespace parley::protocol::base64 {

/// Number of characters that encode that many bytes, including padding.
constexpr std::size_t encoded_size(std::size_t bytes) {
  return (bytes + 2) / 3 * 4;
}

/// `text` without spaces, tabs and line ends; nothing if it has none, as is usual: then this is one quick look at it.
std::optional<std::string> joined(std::string_view text);

/// Number of bytes that `text` encodes, assuming that it is valid; nothing if its length is not a multiple of 4.
std::optional<std::size_t> decoded_size(std::string_view text);

/// Decodes whole groups: text.size() must be a multiple of 4, without padding; `out` must have room for 3/4 of it.
/// False if a character is wrong.
bool decode_groups(std::string_view text, std::byte* out);

/// The same, but allows padding at the end; `out` must have room for decoded_size(text).
bool decode_to(std::string_view text, std::byte* out);

/// Decodes all of `text`. Returns nothing if it is not base64; `fault(text)` says why.
std::optional<std::string> decode(std::string_view text);

/// What is wrong with `text`, in words; empty if it is valid.
std::string fault(std::string_view text);

/// Appends the encoding of `bytes` to `out`.
void append(std::span<const std::byte> bytes, std::string& out);

} // namespace parley::protocol::base64
