#pragma once

#include "base/g711.hpp"

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

enum class wav_coding : std::uint8_t { pcm, floating, mu_law, a_law };

/// PCM of 8, 16, 24 or 32 bits, float of 32 or 64, or 8 bits of G.711.
struct wav_format {
  wav_coding coding = wav_coding::pcm;
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
  std::size_t data_bytes = 0; ///< size according to the header; the largest number if it goes on to the end

  /// Number of whole frames (one sample of each channel) that exist.
  std::size_t frames() const { return data.size() / format.frame_bytes(); }

  /// One sample: integers become [-1, 1); floats are returned as stored, which may be any value, even NaN. A 64-bit float
  /// beyond those of 32 bits is infinite.
  float sample(std::size_t frame, std::size_t channel) const;
};

/// Whether the bytes start with a RIFF/WAVE header.
bool looks_like_wav(std::string_view bytes);

/// Finds the sound, plain or WAVE_FORMAT_EXTENSIBLE; if a data chunk is shorter than it claims, returns what exists. A data
/// chunk with length 0, as streams write it, extends to the end of the file unless other chunks follow it.
/// None if something is wrong, which `problem` then explains in plain words.
std::optional<wav_view> view_wav(std::string_view bytes, std::string& problem);

inline constexpr std::size_t wav_header_bytes = 44;

/// The header for `data_bytes` bytes of mono PCM16.
std::array<char, wav_header_bytes> wav_header(std::uint32_t rate, std::uint32_t data_bytes);

inline float wav_view::sample(std::size_t frame, std::size_t channel) const {
  const auto at = frame * format.frame_bytes() + channel * format.sample_bytes;
  switch (format.coding) {
  case wav_coding::pcm: break;
  case wav_coding::floating:
    return format.sample_bytes == 4 ? detail::load_as<float>(data, at)
                                    : static_cast<float>(detail::load_as<double>(data, at));
  case wav_coding::mu_law: return static_cast<float>(decode_mu_law(static_cast<std::uint8_t>(data[at]))) / 32768.0f;
  case wav_coding::a_law: return static_cast<float>(decode_a_law(static_cast<std::uint8_t>(data[at]))) / 32768.0f;
  }
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
