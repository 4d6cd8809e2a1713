#pragma once

#include "protocol/errors.hpp"
#include "protocol/events.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

// Samples on the wire: mono float32, little-endian, base64 (docs/protocol.md 1).
namespace parley::protocol {

/// The allowed number of samples, both ends included.
struct sample_range {
  std::size_t least = 1;
  std::size_t most = 0;
};

/// Base64 text → samples, finite and clamped to [-1, 1]. The length is checked before decoding. What is a file of sound
/// instead is told by its kind. Errors are invalid_payload and name `field`.
result<pcm> decode_samples(std::string_view base64_text, sample_range allowed, std::string_view field);

/// Appends the samples to `out` as base64, clamped to [-1, 1], with NaN as 0.
void append_samples(std::span<const float> samples, std::string& out);

} // namespace parley::protocol
