#pragma once

#include <cstddef>
#include <span>
#include <string_view>

// Processes the long middle of a text with AVX2, eight groups of base64 per step. It stops before the end and before
// anything invalid; the tables of base64.cpp do the rest. Without AVX2 it does nothing.
namespace parley::protocol::base64::wide {

/// Decodes whole groups from the front of `text` and returns how many; `out` must have room for 3/4 of the text.
std::size_t decode_groups(std::string_view text, std::byte* out);

/// Encodes from the front of `bytes` into `out` as far as it can; returns the number of three-byte groups.
std::size_t encode_groups(std::span<const std::byte> bytes, std::span<char> out);

} // namespace parley::protocol::base64::wide
