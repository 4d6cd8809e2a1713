#include "base/wav.hpp"

#include "base/file_kind.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace parley::base {

namespace {

constexpr std::size_t riff_header = 12;
constexpr std::size_t chunk_header = 8;
constexpr std::uint16_t format_pcm = 1;
constexpr std::uint16_t format_float = 3;
constexpr std::uint16_t format_a_law = 6;
constexpr std::uint16_t format_mu_law = 7;
constexpr std::uint16_t format_extensible = 0xFFFE;
/// Bytes 2..15 of the sub-format GUIDs of PCM and float.
constexpr std::string_view guid_tail("\x00\x00\x00\x00\x10\x00\x80\x00\x00\xAA\x00\x38\x9B\x71", 14);

std::string words_of_tag(std::uint16_t tag) {
  switch (tag) {
  case 2: return " (Microsoft's ADPCM)";
  case 17: return " (IMA ADPCM)";
  case 49: return " (GSM 6.10)";
  case 80: return " (MPEG)";
  case 85: return " (MP3)";
  case 255: return " (AAC)";
  default: return {};
  }
}

std::optional<wav_coding> coding_of(std::uint16_t tag, unsigned bits) {
  switch (tag) {
  case format_pcm:
    return bits == 8 || bits == 16 || bits == 24 || bits == 32 ? std::optional(wav_coding::pcm) : std::nullopt;
  case format_float: return bits == 32 || bits == 64 ? std::optional(wav_coding::floating) : std::nullopt;
  case format_mu_law: return bits == 8 ? std::optional(wav_coding::mu_law) : std::nullopt;
  case format_a_law: return bits == 8 ? std::optional(wav_coding::a_law) : std::nullopt;
  default: return std::nullopt;
  }
}

/// Whether `rest` is nothing but whole chunks with plausible names.
bool are_chunks(std::string_view rest) {
  while (rest.size() >= chunk_header) {
    for (const char c : rest.substr(0, 4))
      if (c < ' ' || c > '~') return false;
    const std::size_t size = detail::load_as<std::uint32_t>(rest, 4);
    if (size > rest.size() - chunk_header) return false;
    rest.remove_prefix(std::min(chunk_header + size + size % 2, rest.size()));
  }
  return rest.empty();
}

std::optional<wav_format> read_format(std::string_view chunk, std::string& problem) {
  const auto fail = [&](std::string why) {
    problem = "WAV: " + std::move(why);
    return std::nullopt;
  };
  if (chunk.size() < 16) return fail("the fmt chunk is too short");
  auto tag = detail::load_as<std::uint16_t>(chunk, 0);
  const auto bits = detail::load_as<std::uint16_t>(chunk, 14);
  if (tag == format_extensible) {
    if (chunk.size() < 40) return fail("the extensible fmt chunk is too short");
    if (chunk.substr(26, 14) != guid_tail) return fail("unknown sub-format");
    tag = detail::load_as<std::uint16_t>(chunk, 24);
  }
  const auto coding = coding_of(tag, bits);
  if (!coding)
    return fail("format " + std::to_string(tag) + words_of_tag(tag) + " with " + std::to_string(bits) +
                " bits is neither PCM of 8, 16, 24 or 32 bits nor float nor G.711");

  const wav_format out{*coding, detail::load_as<std::uint16_t>(chunk, 2), detail::load_as<std::uint32_t>(chunk, 4),
                       bits / 8u};
  if (out.channels == 0) return fail("no channels");
  if (detail::load_as<std::uint16_t>(chunk, 12) != out.frame_bytes())
    return fail("the block size does not fit the channels and bits");
  if (out.rate < 1'000 || out.rate > 768'000) return fail(std::to_string(out.rate) + " Hz is outside 1000..768000");
  return out;
}

} // namespace

bool looks_like_wav(std::string_view bytes) {
  return bytes.size() >= riff_header && bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WAVE";
}

std::optional<wav_view> view_wav(std::string_view bytes, std::string& problem) {
  const auto fail = [&](const char* why) {
    problem = why;
    return std::nullopt;
  };
  if (!looks_like_wav(bytes)) {
    const auto kind = kind_of(bytes);
    problem =
        kind == file_kind::unknown ? "WAV: no RIFF/WAVE header" : std::string(base::name_of(kind)) + ", no WAV file";
    return std::nullopt;
  }
  std::optional<wav_format> format;
  for (auto at = riff_header; bytes.size() - at >= chunk_header;) {
    const auto id = bytes.substr(at, 4);
    const std::size_t size = detail::load_as<std::uint32_t>(bytes, at + 4);
    const auto body = bytes.substr(at + chunk_header, size);
    if (id == "data") {
      if (!format) return fail("WAV: no fmt chunk before the data");
      const auto rest = bytes.substr(at + chunk_header);
      if (size == 0 && !are_chunks(rest))
        return wav_view{*format, rest, at + chunk_header, std::numeric_limits<std::size_t>::max()};
      return wav_view{*format, body, at + chunk_header, size};
    }
    if (body.size() < size) break;
    if (id == "fmt ") {
      format = read_format(body, problem);
      if (!format) return std::nullopt;
    }
    at = std::min(at + chunk_header + size + size % 2, bytes.size());
  }
  return fail("WAV: no data chunk");
}

std::array<char, wav_header_bytes> wav_header(std::uint32_t rate, std::uint32_t data_bytes) {
  constexpr std::uint16_t channels = 1, sample_bytes = 2;
  std::array<char, wav_header_bytes> header{};
  char* to = header.data();
  const auto text = [&](std::string_view word) { to = std::copy(word.begin(), word.end(), to); };
  const auto number = [&](auto value) {
    std::memcpy(to, &value, sizeof value);
    to += sizeof value;
  };
  text("RIFF");
  number(static_cast<std::uint32_t>(wav_header_bytes) - 8 + data_bytes);
  text("WAVEfmt ");
  number(std::uint32_t{16});
  number(format_pcm);
  number(channels);
  number(rate);
  number(rate * channels * sample_bytes);
  number(static_cast<std::uint16_t>(channels * sample_bytes));
  number(static_cast<std::uint16_t>(sample_bytes * 8));
  text("data");
  number(data_bytes);
  return header;
}

} // namespace parley::base
