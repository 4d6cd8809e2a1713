#include "inference/speech/wav_file.hpp"

#include <ATen/ATen.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace parley::inference::speech {
namespace {

constexpr std::size_t riff_header = 12, chunk_header = 8, format_bytes = 16;

template<class T>
T load(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// One sample of `width` bytes. Integers but those of 8 bits are signed; they go to the top of 32 bits.
float sample(const char* from, std::size_t width, bool floating) {
  if (floating) return load<float>({from, width}, 0);
  if (width == 1) return static_cast<float>(static_cast<unsigned char>(*from) - 128) / 128.0F;
  std::uint32_t bits = 0;
  std::memcpy(reinterpret_cast<char*>(&bits) + (4 - width), from, width);
  return static_cast<float>(static_cast<std::int32_t>(bits)) / 2147483648.0F;
}

wav_sound parse(std::string_view bytes) {
  if (bytes.size() < riff_header || !bytes.starts_with("RIFF") || bytes.substr(8, 4) != "WAVE")
    throw std::runtime_error("not a WAV file");
  std::string_view format, data;
  for (auto at = riff_header; bytes.size() - at >= chunk_header && data.empty();) {
    const auto body = bytes.substr(at + chunk_header, load<std::uint32_t>(bytes, at + 4));
    if (bytes.substr(at, 4) == "fmt ") format = body;
    if (bytes.substr(at, 4) == "data") data = body;
    at = std::min(bytes.size(), at + chunk_header + body.size() + body.size() % 2);
  }
  if (format.size() < format_bytes || data.empty()) throw std::runtime_error("no format or no samples");
  constexpr std::uint16_t extensible = 0xfffe;
  auto kind = load<std::uint16_t>(format, 0);
  if (kind == extensible && format.size() >= 26) kind = load<std::uint16_t>(format, 24);
  const auto channels = load<std::uint16_t>(format, 2), bits = load<std::uint16_t>(format, 14);
  const bool floating = kind == 3;
  const auto rate = static_cast<int>(load<std::uint32_t>(format, 4));
  if (channels == 0 || rate < 1000 || !(floating ? bits == 32 : kind == 1 && bits % 8 == 0 && bits >= 8 && bits <= 32))
    throw std::runtime_error("neither PCM of 8 to 32 bits nor float32");
  const std::size_t width = bits / 8;
  const auto frames = static_cast<std::int64_t>(data.size() / (width * channels));
  wav_sound sound{at::empty({channels, frames}, at::kFloat), rate};
  auto* out = sound.samples.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < frames; ++i)
    for (std::int64_t c = 0; c < channels; ++c)
      out[c * frames + i] = sample(data.data() + static_cast<std::size_t>(i * channels + c) * width, width, floating);
  return sound;
}

} // namespace

wav_sound read_wav_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(stream), {});
  try {
    return parse(bytes);
  } catch (const std::exception& problem) {
    throw std::runtime_error(file.string() + ": " + problem.what());
  }
}

} // namespace parley::inference::speech
