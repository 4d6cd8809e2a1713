#include "inference/verify/wav_clip.hpp"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace parley::inference::verify {

namespace {

std::uint32_t number(const std::string& bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value |= std::uint32_t{static_cast<unsigned char>(bytes.at(at + i))} << (8 * i);
  return value;
}

} // namespace

std::vector<float> read_wav_clip(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  constexpr std::size_t riff_header = 12, chunk_header = 8;
  bool plain = false; // PCM, mono, 16 kHz, 16 bits
  for (auto at = riff_header; at + chunk_header <= bytes.size();) {
    const auto name = bytes.substr(at, 4);
    const auto size = number(bytes, at + 4, 4);
    at += chunk_header;
    if (name == "fmt ")
      plain = number(bytes, at, 2) == 1 && number(bytes, at + 2, 2) == 1 && number(bytes, at + 4, 4) == 16000 &&
              number(bytes, at + 14, 2) == 16;
    if (name == "data" && plain) {
      std::vector<float> samples;
      for (std::size_t i = 0; i + 1 < size && at + i + 1 < bytes.size(); i += 2)
        samples.push_back(static_cast<float>(static_cast<std::int16_t>(number(bytes, at + i, 2))) / 32768.0F);
      return samples;
    }
    at += size + size % 2;
  }
  throw std::runtime_error(file.string() + ": not a 16-bit mono WAV file of 16 kHz");
}

} // namespace parley::inference::verify
