#include "protocol/media/pcm.hpp"

#include "protocol/media/compact_sound.hpp"
#include "tests/protocol/wire_material.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace parley::protocol;
namespace test = parley::protocol::test;

namespace {

std::vector<float> noise(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> level(-1.0f, 1.0f);
  std::vector<float> out(count);
  for (auto& x : out) x = level(random);
  return out;
}

auto decode(const std::vector<float>& samples) {
  return decode_samples(test::to_base64(test::bytes_of(samples)), {1, 160'000}, "input.audio");
}

constexpr float no_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

} // namespace

TEST_CASE("pcm: samples of any count come back bit for bit") {
  for (std::size_t count : {1u, 2u, 3u, 4u, 5u, 767u, 768u, 769u, 1535u, 1536u, 1537u, 16'000u, 160'000u}) {
    CAPTURE(count);
    auto samples = noise(count, static_cast<unsigned>(count));
    auto decoded = decode(samples);
    REQUIRE(decoded);
    CHECK(**decoded == samples);
    CHECK((*decoded)->capacity() == count);

    std::string text;
    append_samples(samples, text);
    CHECK(text == test::to_base64(test::bytes_of(samples)));
  }
}

TEST_CASE("pcm: samples are clamped, subnormals and zeros kept") {
  auto decoded = decode({2.0f, -3.5f, 1.0f, -1.0f, 0.0f, -0.0f, 1e-40f, std::numeric_limits<float>::max()});
  REQUIRE(decoded);
  CHECK(**decoded == std::vector<float>{1.0f, -1.0f, 1.0f, -1.0f, 0.0f, -0.0f, 1e-40f, 1.0f});
}

TEST_CASE("pcm: NaN and infinities are refused wherever they are") {
  for (float bad : {no_number, -no_number, infinity, -infinity, std::numeric_limits<float>::signaling_NaN()})
    for (std::size_t place : {0u, 1u, 766u, 767u, 768u, 1999u}) {
      auto samples = noise(2000, 3);
      samples[place] = bad;
      auto decoded = decode(samples);
      REQUIRE_FALSE(decoded);
      CHECK(decoded.error().code == error_code::invalid_payload);
      CHECK(decoded.error().message == "input.audio: sample " + std::to_string(place) + " is not finite");
    }
}

TEST_CASE("pcm: lengths that are no samples, or too few or many") {
  auto message = [](const auto& decoded) { return decoded ? std::string("decoded") : decoded.error().message; };
  for (std::size_t bytes : {1u, 2u, 3u, 5u, 64'002u})
    CHECK(message(decode_samples(test::to_base64(std::string(bytes, '\0')), {1, 160'000}, "a")) ==
          "a: " + std::to_string(bytes) + " bytes are no multiple of 4, as float32 samples are");
  CHECK(message(decode_samples("", {1, 10}, "a")) == "a: 0 samples, outside 1..10");
  CHECK(message(decode_samples(test::sound(11), {1, 10}, "a")) == "a: 11 samples, outside 1..10");
  CHECK(message(decode_samples(test::sound(4), {5, 10}, "a")) == "a: 4 samples, outside 5..10");
  CHECK(decode_samples(test::sound(10), {1, 10}, "a"));
  CHECK(message(decode_samples("AAAA=", {1, 10}, "a")) == "a: not base64: 5 characters are no multiple of 4");
  CHECK(message(decode_samples("AAA-AAA=", {1, 10}, "a")) == "a: not base64 at character 3");
}

TEST_CASE("pcm: a wrong character between two blocks is found") {
  auto text = test::sound(2000);
  for (std::size_t place : {4092u, 4095u, 4096u, 8191u})
    for (char wrong : {'=', '-', '\x7F'}) {
      auto broken = text;
      broken[place] = wrong;
      auto decoded = decode_samples(broken, {1, 160'000}, "a");
      REQUIRE_FALSE(decoded);
      CHECK(decoded.error().message == "a: not base64 at character " + std::to_string(place));
    }
}

TEST_CASE("pcm: what is written is finite and within [-1, 1]") {
  std::string text;
  append_samples(std::vector<float>{no_number, infinity, -infinity, 7.0f, -7.0f, 0.5f}, text);
  CHECK(test::samples_of(test::from_base64(text)) == std::vector<float>{0.0f, 1.0f, -1.0f, 1.0f, -1.0f, 0.5f});
}

TEST_CASE("pcm: 16-bit samples in the place of floats are named") {
  std::string bytes;
  for (int i = 0; i < 4000; ++i) {
    // A loud tone: read as floats, some pairs of its samples are not finite.
    const auto sample = static_cast<std::int16_t>(i < 2000 ? 32'700 * std::sin(i * 0.01) : -100 - i % 3);
    bytes.append(reinterpret_cast<const char*>(&sample), sizeof sample);
  }
  const auto decoded = decode_samples(test::to_base64(bytes), {1, 160'000}, "input.audio");
  REQUIRE_FALSE(decoded);
  CHECK(decoded.error().message.ends_with(" is not finite; this looks like 16-bit PCM where float32 is expected"));
}

TEST_CASE("pcm: a file where samples are expected is told by its kind, whatever else is wrong with it") {
  using namespace std::string_literals;
  const auto told = [](const std::string& bytes) {
    const auto decoded = decode_samples(test::to_base64(bytes), {1, 160'000}, "a");
    return decoded ? "decoded" : decoded.error().message;
  };
  const auto wav = test::wav_file({}, std::string(3'201, '\x7F'));
  CHECK(told(wav) == "a: a WAV file, where raw float32 samples are expected");
  CHECK(told("OggS\0\2"s + std::string(500, '\xFF')) == "a: an Ogg file, where raw float32 samples are expected");
  CHECK(told("ID3\4\0\0\0\0\1\0"s + std::string(5'000, '\0')) ==
        "a: an MP3 file, where raw float32 samples are expected");
}

TEST_CASE("pcm: base64 may be in lines") {
  const auto samples = noise(4000, 3);
  const auto text = test::to_base64(test::bytes_of(samples));
  std::string lines;
  for (std::size_t at = 0; at < text.size(); at += 76) lines += text.substr(at, 76) + "\r\n";
  const auto decoded = decode_samples(lines, {1, 160'000}, "a");
  REQUIRE(decoded);
  CHECK(**decoded == samples);
}

TEST_CASE("16-bit sound that is kept as such comes back as it was, other sound as the nearest") {
  std::vector<float> all;
  for (int number = -32'768; number <= 32'767; ++number) all.push_back(static_cast<float>(number) / 32'768);
  CHECK(to_floats(*compact(all)) == all);
  const std::vector<float> others{0.49f / 32'768, 0.51f / 32'768, -0.51f / 32'768, 1, -1, 2, -2};
  CHECK(*compact(others) == std::vector<std::int16_t>{0, 1, -1, 32'767, -32'768, 32'767, -32'768});
}
