#include "protocol/wav.hpp"

#include "protocol/resampler.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

namespace parley::protocol {
namespace {

static_assert(std::endian::native == std::endian::little, "RIFF is little-endian");

constexpr std::size_t riff_header = 12;
constexpr std::size_t chunk_header = 8;
constexpr std::uint16_t format_pcm = 1;
constexpr std::uint16_t format_float = 3;
constexpr std::uint16_t format_extensible = 0xFFFE;
/// Bytes 2..15 of the sub-format GUIDs of PCM and float.
constexpr std::string_view guid_tail("\x00\x00\x00\x00\x10\x00\x80\x00\x00\xAA\x00\x38\x9B\x71", 14);

template<class T>
T load(std::string_view bytes, std::size_t at) {
  T out;
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

template<class T>
void store(T value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

struct layout {
  bool floating = false;
  std::size_t channels = 0;
  std::uint32_t rate = 0;
  std::size_t sample_bytes = 0;
};

tl::expected<layout, std::string> read_format(std::string_view chunk) {
  if (chunk.size() < 16) return tl::unexpected(std::string("WAV: the fmt chunk is too short"));
  auto tag = load<std::uint16_t>(chunk, 0);
  auto bits = load<std::uint16_t>(chunk, 14);
  if (tag == format_extensible) {
    if (chunk.size() < 40) return tl::unexpected(std::string("WAV: the extensible fmt chunk is too short"));
    if (chunk.substr(26, 14) != guid_tail) return tl::unexpected(std::string("WAV: unknown sub-format"));
    tag = load<std::uint16_t>(chunk, 24);
  }
  auto pcm = tag == format_pcm && (bits == 8 || bits == 16 || bits == 24 || bits == 32);
  if (!pcm && !(tag == format_float && bits == 32))
    return tl::unexpected("WAV: format " + std::to_string(tag) + " with " + std::to_string(bits) +
                          " bits is neither PCM of 8, 16, 24 or 32 bits nor float32");

  layout out{tag == format_float, load<std::uint16_t>(chunk, 2), load<std::uint32_t>(chunk, 4), bits / 8u};
  if (out.channels == 0) return tl::unexpected(std::string("WAV: no channels"));
  if (load<std::uint16_t>(chunk, 12) != out.channels * out.sample_bytes)
    return tl::unexpected(std::string("WAV: the block size does not fit the channels and bits"));
  if (out.rate < 1'000 || out.rate > 768'000)
    return tl::unexpected("WAV: " + std::to_string(out.rate) + " Hz is outside 1000..768000");
  return out;
}

struct found_chunks {
  layout format;
  std::string_view data;  ///< as much of it as there is
  std::size_t data_at;    ///< where it begins
  std::size_t data_bytes; ///< as the header says
};

tl::expected<found_chunks, std::string> find_chunks(std::string_view bytes) {
  std::optional<layout> format;
  for (auto at = riff_header; bytes.size() - at >= chunk_header;) {
    auto id = bytes.substr(at, 4);
    std::size_t size = load<std::uint32_t>(bytes, at + 4);
    auto body = bytes.substr(at + chunk_header, size);
    if (id == "data") {
      if (!format) return tl::unexpected(std::string("WAV: no fmt chunk before the data"));
      return found_chunks{*format, body, at + chunk_header, size};
    }
    if (body.size() < size) break;
    if (id == "fmt ") {
      auto read = read_format(body);
      if (!read) return tl::unexpected(std::move(read.error()));
      format = *read;
    }
    at = std::min(at + chunk_header + size + size % 2, bytes.size());
  }
  return tl::unexpected(std::string("WAV: no data chunk"));
}

float sample_at(const layout& format, std::string_view data, std::size_t at) {
  if (format.floating) return load<float>(data, at);
  switch (format.sample_bytes) {
  case 1: return (static_cast<float>(static_cast<unsigned char>(data[at])) - 128.0f) / 128.0f;
  case 2: return static_cast<float>(load<std::int16_t>(data, at)) / 32768.0f;
  case 3: {
    auto low = load<std::uint16_t>(data, at);
    auto high = static_cast<signed char>(data[at + 2]);
    return static_cast<float>(high * 65536 + low) / 8388608.0f;
  }
  default: return static_cast<float>(static_cast<double>(load<std::int32_t>(data, at)) / 2147483648.0);
  }
}

float frame_at(const layout& format, std::string_view data, std::size_t frame) {
  auto at = frame * format.channels * format.sample_bytes;
  if (format.channels == 1) return sample_at(format, data, at);
  double sum = 0;
  for (std::size_t c = 0; c < format.channels; ++c) sum += sample_at(format, data, at + c * format.sample_bytes);
  return static_cast<float>(sum / static_cast<double>(format.channels));
}

std::string seconds_text(double seconds) {
  auto text = std::to_string(seconds);
  return text.substr(0, text.size() - 3) + " s";
}

} // namespace

bool looks_like_wav(std::string_view bytes) {
  return bytes.size() >= riff_header && bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WAVE";
}

std::optional<double> wav_seconds(std::string_view head, std::size_t file_bytes) {
  if (!looks_like_wav(head)) return std::nullopt;
  const auto chunks = find_chunks(head);
  if (!chunks) return std::nullopt;
  const auto& format = chunks->format;
  const auto bytes = std::min(chunks->data_bytes, file_bytes - std::min(file_bytes, chunks->data_at));
  const std::size_t frames = bytes / (format.channels * format.sample_bytes);
  return static_cast<double>(frames) / format.rate;
}

tl::expected<std::vector<float>, std::string> read_wav(std::string_view bytes, const wav_options& wanted) {
  if (!looks_like_wav(bytes)) return tl::unexpected(std::string("WAV: no RIFF/WAVE header"));
  auto chunks = find_chunks(bytes);
  if (!chunks) return tl::unexpected(std::move(chunks.error()));
  auto& format = chunks->format;
  auto frames = chunks->data.size() / (format.channels * format.sample_bytes);
  auto seconds = static_cast<double>(frames) / format.rate;
  if (frames == 0 || seconds < wanted.min_seconds || seconds > wanted.max_seconds)
    return tl::unexpected(seconds_text(seconds) + " of sound, outside " + seconds_text(wanted.min_seconds) + ".." +
                          seconds_text(wanted.max_seconds));

  std::vector<float> out;
  out.reserve(static_cast<std::size_t>(seconds * wanted.rate) + 1);
  resampler rates(format.rate, wanted.rate);
  std::array<float, 4096> block;
  for (std::size_t done = 0; done < frames;) {
    auto part = std::min(block.size(), frames - done);
    for (std::size_t i = 0; i < part; ++i) block[i] = frame_at(format, chunks->data, done + i);
    if (auto bad = std::find_if_not(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(part),
                                    [](float x) { return std::isfinite(x); });
        bad != block.begin() + static_cast<std::ptrdiff_t>(part))
      return tl::unexpected("WAV: sample " + std::to_string(done + static_cast<std::size_t>(bad - block.begin())) +
                            " is not finite");
    // Before the resampler: its sums of huge samples would not be numbers any more.
    for (auto& x : std::span(block).first(part)) x = std::clamp(x, -1.0f, 1.0f);
    rates.feed(std::span(block).first(part), out);
    done += part;
  }
  rates.finish(out);
  for (auto& x : out) x = std::clamp(x, -1.0f, 1.0f);
  return out;
}

std::string write_wav(std::span<const float> samples, std::uint32_t rate) {
  constexpr std::uint16_t channels = 1;
  constexpr std::uint16_t bytes = 2;
  auto size = static_cast<std::uint32_t>(samples.size() * bytes);
  std::string out;
  out.reserve(riff_header + 2 * chunk_header + 16 + size);
  out += "RIFF";
  store<std::uint32_t>(36 + size, out);
  out += "WAVEfmt ";
  store<std::uint32_t>(16, out);
  store<std::uint16_t>(format_pcm, out);
  store<std::uint16_t>(channels, out);
  store<std::uint32_t>(rate, out);
  store<std::uint32_t>(rate * channels * bytes, out);
  store<std::uint16_t>(channels * bytes, out);
  store<std::uint16_t>(bytes * 8, out);
  out += "data";
  store<std::uint32_t>(size, out);
  for (auto x : samples) {
    auto scaled = std::isnan(x) ? 0.0f : std::clamp(x, -1.0f, 1.0f) * 32767.0f;
    store<std::int16_t>(static_cast<std::int16_t>(std::lround(scaled)), out);
  }
  return out;
}

} // namespace parley::protocol
