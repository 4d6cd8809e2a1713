#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// The contents of client events. The base64 encoder is not the codec's, which is under test.
namespace parley::protocol::test {

/// JSON for building events and comparing them.
using dom = nlohmann::json;

std::string to_base64(std::string_view bytes);
std::string from_base64(std::string_view text);

std::string bytes_of(const std::vector<float>& samples);
std::vector<float> samples_of(std::string_view bytes);

/// A quiet ramp of that many samples, in base64.
std::string sound(std::size_t samples);

/// A JPEG file whose headers claim that size.
std::string jpeg_file(int width, int height, std::size_t bytes = 64);
std::string jpeg(int width = 640, int height = 480);

struct wav_shape {
  std::uint16_t tag = 1;
  std::uint16_t channels = 1;
  std::uint32_t rate = 16'000;
  std::uint16_t bits = 16;
  bool extensible = false;
};

/// A WAV file around `data` whose header claims `claimed` bytes.
std::string wav_file(const wav_shape& shape, std::string_view data, std::uint32_t claimed);
std::string wav_file(const wav_shape& shape, std::string_view data);

/// Half a second of 16-bit silence with a step, as a WAV file in base64.
std::string wav_voice();

} // namespace parley::protocol::test
