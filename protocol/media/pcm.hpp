#pragma once

#include "protocol/errors.hpp"
#include "protocol/events.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// Why that many samples are not allowed, in words, if so.
std::optional<std::string> judge_count(std::size_t samples, sample_range allowed);

/// The same sound as the wire would bring it: clamped to [-1, 1], with NaN as 0. Copied only if that changes it.
pcm clamped(pcm sound);
pcm clamped(std::vector<float>&& samples);

/// Appends the samples to `out` as base64, clamped to [-1, 1], with NaN as 0.
void append_samples(std::span<const float> samples, std::string& out);

} // namespace parley::protocol
