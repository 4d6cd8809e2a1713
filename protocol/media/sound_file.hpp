#pragma once

#include "base/file_kind.hpp"
#include "protocol/media/wav.hpp"

#include <tl/expected.hpp>

#include <string>
#include <string_view>
#include <vector>

// Files of sound, whatever their kind. WAV is read by our own code, MP3 by libmpg123, the others by libsndfile.
namespace parley::protocol {

/// Whether `read_sound` reads such files: WAV, RF64, W64, AIFF, CAF, AU, FLAC, Ogg (Vorbis, Opus, FLAC) and MP3.
bool is_readable_sound(base::file_kind kind);

/// What a client may send, for messages.
inline constexpr std::string_view readable_sounds = "WAV, MP3, Ogg, FLAC and AIFF";

/// Decodes a file; downmixes and resamples like `read_wav`. Its kind is found from its bytes alone. Decoding stops at
/// `wanted.max_seconds`, whatever the header claims. A file with more than `most_values_a_second` is refused before any of
/// it is decoded. The error names the kind of file, then the problem.
tl::expected<std::vector<float>, std::string> read_sound(std::string_view bytes, const wav_options& wanted = {});

/// Samples of all channels: 8 channels at 48 kHz, or 2 at 192 kHz.
inline constexpr std::uint32_t most_values_a_second = 384'000;

/// Whether a client's frame may hold a file in a coding that makes much sound of few bytes, so that its size does not say
/// how long decoding takes. Never false for one that does; sometimes true for another.
bool may_hold_coded_sound(std::string_view frame);

} // namespace parley::protocol
