#pragma once

#include "base/wav.hpp"

#include <tl/expected.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// RIFF/WAVE <-> mono float32 in [-1, 1].
namespace parley::protocol {

/// The seconds of sound in a file of `file_bytes` bytes, according to its header; `head` holds its first bytes. Nothing
/// if these do not contain a whole header. Never less than `read_wav` reads.
std::optional<double> wav_seconds(std::string_view head, std::size_t file_bytes);

/// What is required of a file.
struct wav_options {
  std::uint32_t rate = 16'000; ///< of the result, in Hz
  double min_seconds = 0;
  double max_seconds = 3600; ///< checked from the header, before memory is allocated
};

/// What is wrong with sound of that length: "0.100 s of sound, outside 0.250 s..60.000 s".
std::string outside_seconds(double seconds, const wav_options& wanted);

/// What is wrong with a sound of that length, in words, if something is.
std::optional<std::string> judge_seconds(double seconds, const wav_options& wanted);

/// Reads PCM of 8, 16, 24 or 32 bits, float of 32 or 64, or G.711 (both laws), plain or WAVE_FORMAT_EXTENSIBLE, any rate from 1 to 768 kHz, any
/// number of channels; downmixes (mean of the channels) and resamples (libsoxr). If a data chunk is shorter than it
/// claims, the existing data is used. The error says what is wrong, in words.
tl::expected<std::vector<float>, std::string> read_wav(std::string_view bytes, const wav_options& wanted = {});

/// Writes a mono PCM16 file; samples are clamped to [-1, 1].
std::string write_wav(std::span<const float> samples, std::uint32_t rate);

} // namespace parley::protocol
