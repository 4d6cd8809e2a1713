#pragma once

#include "protocol/media/resampler.hpp"
#include "protocol/media/two_thirds.hpp"

#include <tl/expected.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// Sound as clients of several APIs send and get it: mono, base64, as PCM16 (little-endian) or G.711.
namespace parley::protocol::speech {

enum class sound_coding : std::uint8_t { pcm16, mu_law, a_law };

struct sound_format {
  sound_coding coding = sound_coding::pcm16;
  int rate = 24'000; ///< Hz; 8000 for both laws

  friend bool operator==(const sound_format&, const sound_format&) = default;
};

inline constexpr int model_input_rate = 16'000; ///< Hz
inline constexpr std::size_t samples_per_ms = model_input_rate / 1000;
inline constexpr int model_output_rate = 24'000; ///< Hz

constexpr std::size_t bytes_per_sample(const sound_format& format) {
  return format.coding == sound_coding::pcm16 ? 2 : 1;
}

/// How long the sound is that so much base64 holds, valid or not.
constexpr double seconds_of(std::string_view base64_text, const sound_format& format) {
  std::size_t padding = 0;
  while (padding < 2 && padding < base64_text.size() && base64_text[base64_text.size() - 1 - padding] == '=') ++padding;
  return (static_cast<double>(base64_text.size()) * 3 / 4 - static_cast<double>(padding)) /
         static_cast<double>(bytes_per_sample(format) * static_cast<std::size_t>(format.rate));
}

/// What a client sends, to samples at 16 kHz in [-1, 1]. One continuous stream: keeps its state from call to call.
class sound_decoder {
public:
  explicit sound_decoder(sound_format format);

  const sound_format& format() const { return format_; }

  /// Returns the number of samples that came in, or in words what is wrong with them: then the stream is unchanged.
  tl::expected<std::size_t, std::string> feed(std::string_view base64_text, std::vector<float>& out);

private:
  sound_format format_;
  std::variant<two_thirds, resampler> to_model_; ///< the first for 24 kHz
};

/// What the model says (24 kHz), to the client's format, as base64. One continuous stream.
class sound_encoder {
public:
  explicit sound_encoder(sound_format format);

  std::string feed(std::span<const float> samples);

  /// The end of the stream: what the resampler still held.
  std::string finish();

private:
  std::string encode(std::span<const float> samples) const;

  sound_format format_;
  resampler from_model_;
};

} // namespace parley::protocol::speech
