#include "protocol/realtime/sound.hpp"

#include "protocol/json/writer.hpp"
#include "protocol/media/base64.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace parley::protocol::realtime {
namespace {

constexpr std::array<std::pair<std::string_view, sound_coding>, 3> names{{
    {"audio/pcm", sound_coding::pcm16},
    {"audio/pcmu", sound_coding::mu_law},
    {"audio/pcma", sound_coding::a_law},
}};
constexpr int law_rate = 8'000;

// ITU-T G.711, on the 16-bit scale.
constexpr int mu_bias = 132;
constexpr int mu_clip = 32'635;

constexpr int decode_mu_law(std::uint8_t code) {
  const int c = code ^ 0xFF;
  const int magnitude = ((((c & 15) << 3) + mu_bias) << ((c & 0x70) >> 4)) - mu_bias;
  return (c & 0x80) != 0 ? -magnitude : magnitude;
}

constexpr std::uint8_t encode_mu_law(int sample) {
  const int sign = sample < 0 ? 0x80 : 0;
  const int magnitude = std::min(sample < 0 ? -sample : sample, mu_clip) + mu_bias;
  int exponent = 7;
  for (int mask = 0x4000; exponent > 0 && (magnitude & mask) == 0; mask >>= 1) --exponent;
  return static_cast<std::uint8_t>(~(sign | (exponent << 4) | ((magnitude >> (exponent + 3)) & 15)));
}

constexpr int decode_a_law(std::uint8_t code) {
  const int c = code ^ 0x55;
  const int exponent = (c & 0x70) >> 4;
  const int mantissa = (c & 15) << 4;
  const int magnitude = exponent == 0 ? mantissa + 8 : (mantissa + 0x108) << (exponent - 1);
  return (c & 0x80) != 0 ? magnitude : -magnitude;
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

template<int (*Decode)(std::uint8_t)>
constexpr std::array<float, 256> table_of() {
  std::array<float, 256> out{};
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(Decode(static_cast<std::uint8_t>(i))) / full_scale;
  return out;
}

constexpr auto mu_law = table_of<decode_mu_law>();
constexpr auto a_law = table_of<decode_a_law>();

std::vector<float> samples_of(std::string_view bytes, sound_coding coding) {
  std::vector<float> out;
  if (coding == sound_coding::pcm16) {
    out.reserve(bytes.size() / 2);
    for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
      const auto low = static_cast<std::uint8_t>(bytes[i]), high = static_cast<std::uint8_t>(bytes[i + 1]);
      out.push_back(static_cast<float>(static_cast<std::int16_t>(low | (high << 8))) / full_scale);
    }
    return out;
  }
  const auto& table = coding == sound_coding::mu_law ? mu_law : a_law;
  out.reserve(bytes.size());
  for (const char byte : bytes) out.push_back(table[static_cast<std::uint8_t>(byte)]);
  return out;
}

int to_16_bits(float sample) {
  if (std::isnan(sample)) return 0;
  return static_cast<int>(std::lround(std::clamp(sample * full_scale, -full_scale, full_scale - 1)));
}

} // namespace

std::optional<sound_format> sound_format_of(std::string_view name, std::optional<std::int64_t> rate) {
  for (const auto& [known, coding] : names) {
    if (known != name) continue;
    const int usual = coding == sound_coding::pcm16 ? model_output_rate : law_rate;
    const bool ours = !rate || *rate == usual || (coding == sound_coding::pcm16 && *rate == model_input_rate);
    if (!ours) return std::nullopt;
    return sound_format{coding, rate ? static_cast<int>(*rate) : usual};
  }
  return std::nullopt;
}

std::string encode_format(const sound_format& format) {
  std::string out;
  json::object_writer write(out);
  write.text("type", names[static_cast<std::size_t>(format.coding)].first);
  if (format.coding == sound_coding::pcm16) write.integer("rate", format.rate);
  write.close();
  return out;
}

sound_decoder::sound_decoder(sound_format format) : format_(format), to_model_(format.rate, model_input_rate) {}

result<std::size_t> sound_decoder::feed(std::string_view base64_text, std::vector<float>& out, std::string_view param) {
  const auto bytes = base64::decode(base64_text);
  if (!bytes) return invalid_value(param, base64::fault(base64_text) + ".");
  if (bytes->size() % bytes_per_sample(format_) != 0)
    return invalid_value(param, "PCM16 sound has an even number of bytes, and this has " +
                                    std::to_string(bytes->size()) + ".");
  const auto samples = samples_of(*bytes, format_.coding);
  to_model_.feed(samples, out);
  return samples.size();
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
  std::string bytes;
  bytes.reserve(samples.size() * bytes_per_sample(format_));
  for (const float sample : samples) {
    const int value = to_16_bits(sample);
    switch (format_.coding) {
    case sound_coding::pcm16:
      bytes += static_cast<char>(value & 0xFF);
      bytes += static_cast<char>((value >> 8) & 0xFF);
      break;
    case sound_coding::mu_law: bytes += static_cast<char>(encode_mu_law(value)); break;
    case sound_coding::a_law: bytes += static_cast<char>(encode_a_law(value)); break;
    }
  }
  std::string out;
  base64::append(std::as_bytes(std::span(bytes)), out);
  return out;
}

} // namespace parley::protocol::realtime
