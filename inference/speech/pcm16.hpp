#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

// The reference rounds to 16 bits in two places (docs/model/talker.md 5, 6).
namespace parley::inference::speech {

/// Rounding of sound that leaves the vocoder.
inline std::int16_t to_stream_pcm16(float x) {
  return static_cast<std::int16_t>(std::clamp(x, -1.0F, 1.0F) * 32767.0F);
}

/// Rounding of a reference voice that is written to a WAV file.
inline std::int16_t to_file_pcm16(float x) {
  return static_cast<std::int16_t>(std::clamp(std::floor(x * 32768.0F), -32768.0F, 32767.0F));
}

} // namespace parley::inference::speech
