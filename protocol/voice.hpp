#pragma once

#include "protocol/errors.hpp"
#include "protocol/events.hpp"

#include <string_view>

// Sound that may come as a WAV file or as raw float32 at 16 kHz, in both dialects (PROTOCOL.md 3.1).
namespace parley::protocol {

/// How long a sound may be, in seconds, both ends included.
struct seconds_range {
  double least = 0;
  double most = 0;
};

/// A reference voice (PROTOCOL.md 3.1).
inline constexpr seconds_range voice_seconds{0.25, 60.0};

/// A chat audio item: no longer than what an 8192-token context can hold at 10 tokens a second.
inline constexpr seconds_range chat_audio_seconds{0.0, 820.0};

/// Base64 text, with or without a `data:…;base64,` prefix -> samples at 16 kHz. Errors are invalid_payload and name
/// `field`.
result<pcm> decode_sound(std::string_view base64_text, seconds_range allowed, std::string_view field);

/// `text` without a `data:…;base64,` prefix.
std::string_view without_data_url(std::string_view text);

} // namespace parley::protocol
