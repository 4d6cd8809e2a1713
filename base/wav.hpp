#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

// RIFF/WAVE files: where their sound is, and what its bytes mean. Never allocates what a header merely claims.
namespace parley::base {

static_assert(std::endian::native == std::endian::little, "RIFF is little-endian");

namespace detail {

template<class T>
T load_as(std::string_view bytes, std::size_t at) {
  T out;
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

} // namespace detail

/// PCM of 8, 16, 24 or 32 bits, or float32.
struct wav_format {
  bool floating = false;
  std::size_t channels = 0; ///< at least 1
  std::uint32_t rate = 0;   ///< 1000..768000 Hz
  std::size_t sample_bytes = 0;

  std::size_t frame_bytes() const { return channels * sample_bytes; }
};

/// The sound inside a file's bytes.
struct wav_view {
  wav_format format;
  std::string_view data;      ///< as much of it as exists
  std::size_t data_at = 0;    ///< its offset in the file
  std::size_t data_bytes = 0; ///< size according to the header

  /// Number of whole frames (one sample of each channel) that exist.
  std::size_t frames() const { return data.size() / format.frame_bytes(); }

  /// One sample: integers become [-1, 1); floats are returned as stored, which may be any value, even NaN.
  float sample(std::size_t frame, std::size_t channel) const;
};

/// Whether the bytes start with a RIFF/WAVE header.
bool looks_like_wav(std::string_view bytes);

/// Finds the sound, plain or WAVE_FORMAT_EXTENSIBLE; if a data chunk is shorter than it claims, returns what exists.
/// None if something is wrong, which `problem` then explains in plain words.
std::optional<wav_view> view_wav(std::string_view bytes, std::string& problem);

inline constexpr std::size_t wav_header_bytes = 44;

/// The header for `data_bytes` bytes of mono PCM16.
std::array<char, wav_header_bytes> wav_header(std::uint32_t rate, std::uint32_t data_bytes);

inline float wav_view::sample(std::size_t frame, std::size_t channel) const {
  const auto at = frame * format.frame_bytes() + channel * format.sample_bytes;
  if (format.floating) return detail::load_as<float>(data, at);
  switch (format.sample_bytes) {
  case 1: return (static_cast<float>(static_cast<unsigned char>(data[at])) - 128.0f) / 128.0f;
  case 2: return static_cast<float>(detail::load_as<std::int16_t>(data, at)) / 32768.0f;
  case 3: {
    const auto low = detail::load_as<std::uint16_t>(data, at);
    const auto high = static_cast<signed char>(data[at + 2]);
    return static_cast<float>(high * 65536 + low) / 8388608.0f;
  }
  default: return static_cast<float>(static_cast<double>(detail::load_as<std::int32_t>(data, at)) / 2147483648.0);
  }
}

} // namespace parley::base
