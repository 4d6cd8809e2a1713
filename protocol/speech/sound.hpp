#pragma once

#include "protocol/media/resampler.hpp"
#include "protocol/media/two_thirds.hpp"
#include "protocol/openai/shared/fault.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// Sound of OpenAI's Realtime API: mono, base64, as PCM16 (little-endian) or G.711.
namespace parley::protocol::speech {

enum class sound_coding : std::uint8_t { pcm16, mu_law, a_law };

/// `audio.input.format` and `audio.output.format`.
struct sound_format {
  sound_coding coding = sound_coding::pcm16;
  int rate = 24'000; ///< Hz; 8000 for both laws

  friend bool operator==(const sound_format&, const sound_format&) = default;
};

inline constexpr int model_input_rate = 16'000; ///< Hz
inline constexpr std::size_t samples_per_ms = model_input_rate / 1000;
inline constexpr int model_output_rate = 24'000; ///< Hz

/// The format of that name (`audio/pcm`, `audio/pcmu`, `audio/pcma`) and rate (absent = the usual one); nothing if it is
/// none of ours.
std::optional<sound_format> sound_format_of(std::string_view name, std::optional<std::int64_t> rate);

/// The JSON object that names the format.
std::string encode_format(const sound_format& format);

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

  /// Returns the number of samples that came in. `param` names the field in faults, which leave the stream unchanged.
  result<std::size_t> feed(std::string_view base64_text, std::vector<float>& out, std::string_view param = "audio");

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
