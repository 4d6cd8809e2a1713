#include "tests/protocol/wire_material.hpp"

#include <cstring>

namespace parley::protocol::test {
namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

template<class T>
std::string little(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string big16(int value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value & 255)};
}

} // namespace

std::string to_base64(std::string_view bytes) {
  std::string out;
  std::uint32_t bits = 0;
  int held = 0;
  for (unsigned char byte : bytes) {
    bits = (bits << 8) | byte;
    for (held += 8; held >= 6; held -= 6) out += alphabet[(bits >> (held - 6)) & 63];
  }
  if (held > 0) out += alphabet[(bits << (6 - held)) & 63];
  while (out.size() % 4 != 0) out += '=';
  return out;
}

std::string from_base64(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0;
  int held = 0;
  for (auto c : text.substr(0, text.find('='))) {
    bits = (bits << 6) | static_cast<std::uint32_t>(alphabet.find(c));
    if ((held += 6) >= 8) out += static_cast<char>((bits >> (held -= 8)) & 255);
  }
  return out;
}

std::string bytes_of(const std::vector<float>& samples) {
  return {reinterpret_cast<const char*>(samples.data()), samples.size() * sizeof(float)};
}

std::vector<float> samples_of(std::string_view bytes) {
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  return out;
}

std::string sound(std::size_t samples) {
  std::vector<float> out(samples);
  for (std::size_t i = 0; i < samples; ++i) out[i] = static_cast<float>(i % 200) / 400.0f - 0.25f;
  return to_base64(bytes_of(out));
}

std::string jpeg_file(int width, int height, std::size_t bytes) {
  std::string out("\xFF\xD8\xFF\xE0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00", 20);
  out += "\xFF\xDB" + big16(5) + "\x01\x02\x03";
  out += "\xFF\xC0" + big16(11) + "\x08" + big16(height) + big16(width) + std::string("\x01\x01\x11\x00", 4);
  out.resize(std::max(bytes, out.size()));
  return out;
}

std::string jpeg(int width, int height) {
  return to_base64(jpeg_file(width, height));
}

std::string wav_file(const wav_shape& shape, std::string_view data, std::uint32_t claimed) {
  auto block = static_cast<std::uint16_t>(shape.channels * shape.bits / 8);
  auto format = little(shape.extensible ? std::uint16_t{0xFFFE} : shape.tag) + little(shape.channels) +
                little(shape.rate) + little(shape.rate * block) + little(block) + little(shape.bits);
  if (shape.extensible)
    format += little(std::uint16_t{22}) + little(shape.bits) + little(std::uint32_t{0}) + little(shape.tag) +
              std::string("\x00\x00\x00\x00\x10\x00\x80\x00\x00\xAA\x00\x38\x9B\x71", 14);
  auto extra =
      std::string("LIST") + little(std::uint32_t{3}) + std::string("abc\0", 4); // an odd size needs a padding byte
  auto body =
      "WAVEfmt " + little(static_cast<std::uint32_t>(format.size())) + format + extra + "data" + little(claimed);
  return "RIFF" + little(static_cast<std::uint32_t>(body.size() + data.size())) + body + std::string(data);
}

std::string wav_file(const wav_shape& shape, std::string_view data) {
  return wav_file(shape, data, static_cast<std::uint32_t>(data.size()));
}

std::string wav_voice() {
  std::string data(16'000, '\0');
  data[9'001] = 0x40;
  return to_base64(wav_file({}, data));
}

} // namespace parley::protocol::test
