#pragma once

#include <cstddef>
#include <span>
#include <string_view>

// The long middle of a text, eight groups of base64 a step, where the processor has AVX2. It stops short of the end and of
// whatever is wrong: the tables of base64.cpp go on from there. Without AVX2 it does nothing.
namespace parley::protocol::base64::wide {

/// Decodes from the front of `text`, whole groups, and tells how many; `out` holds 3/4 of the text.
std::size_t decode_groups(std::string_view text, std::byte* out);

/// Encodes from the front of `bytes` into `out`, as far as it goes, and tells how many groups of three.
std::size_t encode_groups(std::span<const std::byte> bytes, std::span<char> out);

} // namespace parley::protocol::base64::wide
