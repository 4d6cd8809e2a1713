#include "protocol/speech/sound.hpp"

#include "base/file_kind.hpp"
#include "base/g711.hpp"
#include "protocol/media/base64.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace parley::protocol::speech {
namespace {

// ITU-T G.711, on the 16-bit scale.
constexpr int mu_bias = base::mu_law_bias;
constexpr int mu_clip = 32'635;

constexpr std::uint8_t encode_mu_law(int sample) {
  const int sign = sample < 0 ? 0x80 : 0;
  const int magnitude = std::min(sample < 0 ? -sample : sample, mu_clip) + mu_bias;
  int exponent = 7;
  for (int mask = 0x4000; exponent > 0 && (magnitude & mask) == 0; mask >>= 1) --exponent;
  return static_cast<std::uint8_t>(~(sign | (exponent << 4) | ((magnitude >> (exponent + 3)) & 15)));
}

constexpr std::uint8_t encode_a_law(int sample) {
  const int sign = sample >= 0 ? 0x80 : 0;
  const int magnitude = std::min(sample >= 0 ? sample : -sample - 1, 32'767);
  int exponent = 7;
  for (int mask = 0x4000; exponent > 0 && (magnitude & mask) == 0; mask >>= 1) --exponent;
  const int mantissa = (exponent == 0 ? magnitude >> 4 : magnitude >> (exponent + 3)) & 15;
  return static_cast<std::uint8_t>((sign | (exponent << 4) | mantissa) ^ 0x55);
}

constexpr float full_scale = 32'768;

constexpr std::size_t piece_samples = 1u << 15; ///< of a long append, what is decoded at once
constexpr std::size_t spare = 1024;             ///< a resampler may give more than the rates say

/// Conversions go in steps of this many samples, so that the compiler vectorises them.
constexpr std::size_t step = 64;
static_assert(std::endian::native == std::endian::little, "the wire's PCM16 is little-endian");

template<int (*Decode)(std::uint8_t)>
constexpr std::array<float, 256> table_of() {
  std::array<float, 256> out{};
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(Decode(static_cast<std::uint8_t>(i))) / full_scale;
  return out;
}

constexpr auto mu_law = table_of<base::decode_mu_law>();
constexpr auto a_law = table_of<base::decode_a_law>();

std::vector<float> samples_of(std::string_view bytes, sound_coding coding) {
  std::vector<float> out;
  if (coding == sound_coding::pcm16) {
    out.resize(bytes.size() / 2);
    std::array<std::int16_t, step> words{};
    for (std::size_t at = 0; at < out.size(); at += step) {
      const auto count = std::min(step, out.size() - at);
      std::memcpy(words.data(), bytes.data() + 2 * at, 2 * count);
      std::array<float, step> samples;
      for (std::size_t i = 0; i < step; ++i) samples[i] = static_cast<float>(words[i]) / full_scale;
      std::copy_n(samples.begin(), count, out.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return out;
  }
  const auto& table = coding == sound_coding::mu_law ? mu_law : a_law;
  out.reserve(bytes.size());
  for (const char byte : bytes) out.push_back(table[static_cast<std::uint8_t>(byte)]);
  return out;
}

/// What the bytes are if they are a file instead of samples.
base::file_kind kind_of(std::string_view bytes, sound_coding coding) {
  const auto kind = base::certain_kind_of(bytes);
  // A quiet line is a handful of codes near FF in G.711, and now and then they fit together as two frames.
  const bool by_frames = (kind == base::file_kind::mp3 || kind == base::file_kind::aac) && !bytes.starts_with("ID3");
  return by_frames && coding != sound_coding::pcm16 ? base::file_kind::unknown : kind;
}

/// Rounded to 16 bits, and saturated; NaN is silence.
void to_16_bits(std::span<const float> samples, std::int16_t* out) {
  std::array<float, step> work{};
  std::array<std::int16_t, step> words;
  for (std::size_t at = 0; at < samples.size(); at += step) {
    const auto piece = samples.subspan(at, std::min(step, samples.size() - at));
    std::copy(piece.begin(), piece.end(), work.begin());
    for (std::size_t i = 0; i < step; ++i) {
      float x = work[i] * full_scale;
      x = x == x ? x : 0;
      x = x > -full_scale ? x : -full_scale;
      x = x < full_scale - 1 ? x : full_scale - 1;
      words[i] = static_cast<std::int16_t>(static_cast<std::int32_t>(x + (x < 0 ? -0.5f : 0.5f)));
    }
    std::copy_n(words.begin(), piece.size(), out + at);
  }
}

} // namespace

sound_decoder::sound_decoder(sound_format format) : format_(format) {
  if (format.rate != model_output_rate) to_model_.emplace<resampler>(format.rate, model_input_rate);
}

tl::expected<std::size_t, std::string> sound_decoder::feed(std::string_view base64_text, std::vector<float>& out) {
  if (const auto lines = base64::joined(base64_text)) return feed(*lines, out);
  const auto bytes = base64::decode(base64_text);
  if (!bytes) return tl::unexpected(base64::fault(base64_text) + ".");
  if (const auto kind = kind_of(*bytes, format_.coding); kind != base::file_kind::unknown)
    return tl::unexpected(std::string(base::name_of(kind)) + ", where the samples alone are expected.");
  if (bytes->size() % bytes_per_sample(format_) != 0)
    return tl::unexpected("PCM16 sound has an even number of bytes, and this has " + std::to_string(bytes->size()) +
                          ".");
  // In pieces: at every rate the samples of all would take up more than the bytes, and two of these more again.
  const std::size_t piece_bytes = bytes_per_sample(format_) * piece_samples;
  out.reserve(out.size() +
              bytes->size() / bytes_per_sample(format_) * model_input_rate / static_cast<std::size_t>(format_.rate) +
              spare);
  for (std::string_view rest = *bytes; !rest.empty(); rest.remove_prefix(std::min(rest.size(), piece_bytes))) {
    const auto samples = samples_of(rest.substr(0, piece_bytes), format_.coding);
    std::visit([&](auto& each) { each.feed(samples, out); }, to_model_);
  }
  return bytes->size() / bytes_per_sample(format_);
}

sound_encoder::sound_encoder(sound_format format) : format_(format), from_model_(model_output_rate, format.rate) {}

std::string sound_encoder::feed(std::span<const float> samples) {
  std::vector<float> out;
  from_model_.feed(samples, out);
  return encode(out);
}

std::string sound_encoder::finish() {
  std::vector<float> out;
  from_model_.finish(out);
  return encode(out);
}

std::string sound_encoder::encode(std::span<const float> samples) const {
  std::vector<std::int16_t> words(samples.size());
  to_16_bits(samples, words.data());
  std::string out;
  if (format_.coding == sound_coding::pcm16) {
    base64::append(std::as_bytes(std::span(words)), out);
    return out;
  }
  const auto code = format_.coding == sound_coding::mu_law ? encode_mu_law : encode_a_law;
  std::string bytes(words.size(), '\0');
  std::transform(words.begin(), words.end(), bytes.begin(), [&](int word) { return static_cast<char>(code(word)); });
  base64::append(std::as_bytes(std::span(bytes)), out);
  return out;
}

} // namespace parley::protocol::speech
