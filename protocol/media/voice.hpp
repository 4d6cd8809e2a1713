#pragma once

#include "protocol/errors.hpp"
#include "protocol/events.hpp"
#include "protocol/media/pcm.hpp"

#include <optional>
#include <string_view>

// Sound that is either a file (media/sound_file) or raw float32 at 16 kHz, in both dialects (docs/protocol.md 3.1).
namespace parley::protocol {

/// The allowed length of a sound in seconds, both ends included.
struct seconds_range {
  double least = 0;
  double most = 0;
};

/// For a reference voice (docs/protocol.md 3.1).
inline constexpr seconds_range voice_seconds{0.25, 60.0};

/// How many samples at 16 kHz that may be.
sample_range samples_in(seconds_range allowed);

/// Base64 text, with or without a `data:…;base64,` prefix → samples at 16 kHz. Errors are invalid_payload and name
/// `field`.
result<pcm> decode_sound(std::string_view base64_text, seconds_range allowed, std::string_view field);

/// The number of seconds that `decode_sound` would return, from the length or the header, without decoding. Nothing if
/// it is neither raw nor WAV: `decode_sound` then finds out, and decodes no more than is allowed.
std::optional<double> seconds_of_sound(std::string_view base64_text);

/// Whether a frame may hold a WAV file, whose few bytes may be a minute of sound. A file may also be written with escapes, so
/// those of ASCII letters count as one.
bool may_hold_wav(std::string_view frame);

/// `text` without a `data:…;base64,` prefix.
std::string_view without_data_url(std::string_view text);

} // namespace parley::protocol
