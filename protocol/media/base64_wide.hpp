#pragma once

#include <cstddef>
#include <span>
#include <string_view>

// The long middle of a text, eight groups of base64 per step, where the processor has AVX2. It stops before the end and
// before anything wrong; the tables of base64.cpp do the rest. Without AVX2 it does nothing.
namespace parley::protocol::base64::wide {

/// Decodes whole groups from the front of `text` and returns how many; `out` has room for 3/4 of the text.
std::size_t decode_groups(std::string_view text, std::byte* out);

/// Encodes from the front of `bytes` into `out`, as far as it can, and returns the number of groups of three.
std::size_t encode_groups(std::span<const std::byte> bytes, std::span<char> out);

} // namespace parley::protocol::base64::wide
