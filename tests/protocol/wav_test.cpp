#include "protocol/media/wav.hpp"

#include "protocol/media/resampler.hpp"
#include "tests/protocol/wire_material.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <numbers>

using namespace parley::protocol;
namespace test = parley::protocol::test;

namespace {

std::vector<float> tone(double hertz, double rate, double seconds, double level = 0.5) {
  std::vector<float> out(static_cast<std::size_t>(rate * seconds));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(level * std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / rate));
  return out;
}

/// The same samples in every channel, stored as a file of that shape stores them.
std::string stored(const std::vector<float>& samples, const test::wav_shape& shape) {
  std::string out;
  for (auto x : samples)
    for (int c = 0; c < shape.channels; ++c) {
      if (shape.tag == 3) {
        out.append(reinterpret_cast<const char*>(&x), 4);
      } else if (shape.bits == 8) {
        out += static_cast<char>(std::lround(x * 127) + 128);
      } else {
        auto value =
            static_cast<std::int32_t>(std::lround(static_cast<double>(x) * (std::pow(2.0, shape.bits - 1) - 1)));
        out.append(reinterpret_cast<const char*>(&value), shape.bits / 8u);
      }
    }
  return out;
}

double worst(const std::vector<float>& a, const std::vector<float>& b, std::size_t from, std::size_t to) {
  double out = 0;
  for (auto i = from; i < to; ++i) out = std::max(out, static_cast<double>(std::abs(a[i] - b[i])));
  return out;
}

std::string refusal(std::string_view file, const wav_options& wanted = {}) {
  auto read = read_wav(file, wanted);
  return read ? "read" : read.error();
}

} // namespace

TEST_CASE("wav: every sample format at 16 kHz gives its samples") {
  struct row {
    std::uint16_t tag, bits;
    double error;
  };
  auto samples = tone(440, 16'000, 0.5);
  for (auto [tag, bits, error] :
       {row{1, 8, 1.3e-2}, row{1, 16, 6e-5}, row{1, 24, 3e-7}, row{1, 32, 1e-7}, row{3, 32, 0}})
    for (std::uint16_t channels : {1, 2, 6})
      for (bool extensible : {false, true}) {
        test::wav_shape shape{tag, channels, 16'000, bits, extensible};
        CAPTURE(tag, bits, channels, extensible);
        auto read = read_wav(test::wav_file(shape, stored(samples, shape)));
        REQUIRE(read);
        REQUIRE(read->size() == samples.size());
        CHECK(worst(*read, samples, 0, samples.size()) <= error);
      }
}

TEST_CASE("wav: extremes of the integer formats") {
  auto read = read_wav(test::wav_file({1, 1, 16'000, 24}, std::string("\xFF\xFF\x7F\x00\x00\x80\xFF\xFF\xFF", 9)));
  REQUIRE(read);
  CHECK(*read == std::vector<float>{8388607.0f / 8388608.0f, -1.0f, -1.0f / 8388608.0f});
  read = read_wav(test::wav_file({1, 1, 16'000, 8}, std::string("\x00\x80\xFF", 3)));
  REQUIRE(read);
  CHECK(*read == std::vector<float>{-1.0f, 0.0f, 127.0f / 128.0f});
}

TEST_CASE("wav: channels are averaged") {
  auto read = read_wav(test::wav_file({3, 2, 16'000, 32}, test::bytes_of({1.0f, 0.0f, -0.5f, 0.25f})));
  REQUIRE(read);
  CHECK(*read == std::vector<float>{0.5f, -0.125f});
}

TEST_CASE("wav: other rates are resampled to the same sound") {
  for (std::uint32_t rate : {8'000u, 11'025u, 22'050u, 24'000u, 44'100u, 48'000u, 96'000u, 192'000u}) {
    CAPTURE(rate);
    test::wav_shape shape{3, 1, rate, 32};
    auto read = read_wav(test::wav_file(shape, stored(tone(1000, rate, 1.0), shape)));
    REQUIRE(read);
    CHECK(std::abs(static_cast<double>(read->size()) - 16'000.0) <= 2.0);
    // Away from the edges, where the tone starts abruptly.
    CHECK(worst(*read, tone(1000, 16'000, 1.0), 1000, 15'000) < 2e-4);
  }
}

TEST_CASE("wav: what the target rate cannot hold is filtered out") {
  test::wav_shape shape{3, 1, 48'000, 32};
  auto read = read_wav(test::wav_file(shape, stored(tone(12'000, 48'000, 1.0), shape)));
  REQUIRE(read);
  CHECK(worst(*read, std::vector<float>(16'000), 1000, 15'000) < 1e-3);
}

TEST_CASE("wav: resampling does not depend on how the samples are cut") {
  auto samples = tone(700, 44'100, 0.7);
  std::vector<float> whole;
  resampler one(44'100, 16'000);
  one.feed(samples, whole);
  one.finish(whole);
  std::vector<float> pieces;
  resampler many(44'100, 16'000);
  for (std::size_t at = 0; at < samples.size(); at += 997)
    many.feed(std::span(samples).subspan(at, std::min<std::size_t>(997, samples.size() - at)), pieces);
  many.finish(pieces);
  CHECK(pieces == whole);
}

TEST_CASE("wav: an overshoot of the filter is clamped") {
  test::wav_shape shape{3, 1, 8'000, 32};
  std::vector<float> square(8'000);
  for (std::size_t i = 0; i < square.size(); ++i) square[i] = i / 20 % 2 == 0 ? 1.0f : -1.0f;
  auto read = read_wav(test::wav_file(shape, stored(square, shape)));
  REQUIRE(read);
  CHECK(std::all_of(read->begin(), read->end(), [](float x) { return x >= -1.0f && x <= 1.0f; }));
}

TEST_CASE("wav: a data chunk that claims more than there is gives what is there") {
  auto data = std::string(3200, '\x11');
  for (std::uint32_t claimed : {3202u, 4'000'000'000u, 0xFFFF'FFFFu}) {
    auto read = read_wav(test::wav_file({}, data, claimed));
    REQUIRE(read);
    CHECK(read->size() == 1600);
  }
  CHECK(read_wav(test::wav_file({}, data, 100))->size() == 50);
}

TEST_CASE("wav: a data chunk of no length goes on to the end, unless other chunks follow it") {
  const auto data = std::string(3200, '\x11');
  CHECK(read_wav(test::wav_file({}, data, 0))->size() == 1600);
  CHECK(read_wav(test::wav_file({1, 2, 48'000, 24}, std::string(48'000, '\x05'), 0))->size() == 2667);
  const std::string list("LIST\x04\0\0\0INFO", 12);
  CHECK(refusal(test::wav_file({}, "", 0) + list) == "0.000 s of sound, outside 0.000 s..3600.000 s");
  CHECK(refusal(test::wav_file({}, "", 0)) == "0.000 s of sound, outside 0.000 s..3600.000 s");
  CHECK(read_wav(test::wav_file({}, "", 0) + list.substr(0, 11))->size() == 5); // no whole chunk
  const auto file = test::wav_file({}, data, 0);
  const auto header = file.size() - data.size();
  for (const auto head : {file.size(), header + 100, header})
    CHECK(wav_seconds(file.substr(0, head), file.size()) == 0.1);
  CHECK(wav_seconds(file.substr(0, header), header) == 0.0);
  CHECK(read_wav(test::wav_file({}, data + "x"))->size() == 1600);
}

TEST_CASE("wav: headers that cannot be true are refused") {
  const std::string data(3200, '\0');
  CHECK(refusal("") == "WAV: no RIFF/WAVE header");
  CHECK(refusal("RIFF....AVI ") == "an AVI file, no WAV file");
  CHECK(refusal("RIFF....AVIX") == "WAV: no RIFF/WAVE header");
  CHECK(refusal("RIFF....WAVE") == "WAV: no data chunk");
  CHECK(refusal(test::wav_file({}, data).substr(0, 40)) == "WAV: no data chunk");
  CHECK(refusal(std::string("RIFF....WAVEfmt \x04\x00\x00\x00", 20) + "abcd") == "WAV: the fmt chunk is too short");
  CHECK(refusal("RIFF....WAVEdata" + std::string("\x04\x00\x00\x00", 4) + "abcd") ==
        "WAV: no fmt chunk before the data");
  CHECK(refusal("RIFF....WAVELIST" + std::string("\xFF\xFF\xFF\xFF", 4) + "abcd") == "WAV: no data chunk");
  CHECK(refusal(test::wav_file({1, 0}, data)) == "WAV: no channels");
  CHECK(refusal(test::wav_file({1, 1, 0}, data)) == "WAV: 0 Hz is outside 1000..768000");
  CHECK(refusal(test::wav_file({1, 1, 4'000'000'000u}, data)) == "WAV: 4000000000 Hz is outside 1000..768000");
  CHECK_THAT(refusal(test::wav_file({1, 1, 16'000, 12}, data)), Catch::StartsWith("WAV: format 1 with 12 bits"));
  CHECK_THAT(refusal(test::wav_file({3, 1, 16'000, 16}, data)), Catch::StartsWith("WAV: format 3 with 16 bits"));
  CHECK_THAT(refusal(test::wav_file({2, 1, 16'000, 16}, data)), Catch::StartsWith("WAV: format 2"));
  auto other_guid = test::wav_file({1, 1, 16'000, 16, true}, data);
  other_guid[50] = 'x';
  CHECK(refusal(other_guid) == "WAV: unknown sub-format");
  auto other_block = test::wav_file({}, data);
  other_block[32] = 7;
  CHECK(refusal(other_block) == "WAV: the block size does not fit the channels and bits");
}

TEST_CASE("wav: lengths are checked before anything is converted") {
  wav_options voice{16'000, 0.25, 60};
  CHECK(refusal(test::wav_file({}, std::string(7'998, '\0')), voice) == "0.249 s of sound, outside 0.250 s..60.000 s");
  CHECK(refusal(test::wav_file({}, std::string(8'000, '\0')), voice) == "read");
  CHECK(refusal(test::wav_file({}, std::string(1'920'000, '\0')), voice) == "read");
  CHECK(refusal(test::wav_file({}, std::string(1'920'002, '\0')), voice) ==
        "60.000 s of sound, outside 0.250 s..60.000 s");
  CHECK(refusal(test::wav_file({}, "")) == "0.000 s of sound, outside 0.000 s..3600.000 s");
  CHECK(refusal(test::wav_file({1, 1, 1'000, 8}, std::string(10'000'000, '\0'))) ==
        "10000.000 s of sound, outside 0.000 s..3600.000 s");
}

TEST_CASE("wav: float samples that are not finite are refused") {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> samples(9000, 0.1f);
    samples[5000] = bad;
    CHECK(refusal(test::wav_file({3, 1, 16'000, 32}, test::bytes_of(samples))) == "WAV: sample 5000 is not finite");
  }
}

TEST_CASE("wav: samples far beyond full scale stay numbers when the rate changes") {
  for (std::uint32_t rate : {8'000u, 24'000u}) {
    const test::wav_shape shape{3, 1, rate, 32};
    std::vector<float> samples(9000, 0.1f);
    samples[4000] = 3e38f;
    samples[4001] = -3e38f;
    const auto read = read_wav(test::wav_file(shape, stored(samples, shape)));
    REQUIRE(read);
    CHECK(std::all_of(read->begin(), read->end(), [](float x) { return x >= -1.0f && x <= 1.0f; }));
  }
}

TEST_CASE("wav: every cut of a file is read or refused, never more than that") {
  auto file = test::wav_file({1, 2, 22'050, 24, true}, std::string(600, '\x21'));
  for (std::size_t size = 0; size <= file.size(); ++size) {
    auto read = read_wav(std::string(file, 0, size));
    if (read) CHECK(read->size() <= 80);
  }
}

TEST_CASE("wav: what is written can be read") {
  auto samples = tone(300, 24'000, 0.1, 0.9);
  samples[7] = 3.0f;
  samples[8] = -3.0f;
  samples[9] = std::numeric_limits<float>::quiet_NaN();
  auto file = write_wav(samples, 24'000);
  CHECK(file.size() == 44 + samples.size() * 2);
  auto read = read_wav(file, {24'000});
  REQUIRE(read);
  REQUIRE(read->size() == samples.size());
  samples[7] = 1.0f;
  samples[8] = -1.0f;
  samples[9] = 0.0f;
  CHECK(worst(*read, samples, 0, samples.size()) < 6e-5);
}

TEST_CASE("wav: the spoken question of the test data") {
  std::ifstream in("tests/data/question.wav", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  auto read = read_wav(bytes);
  REQUIRE(read);
  CHECK(read->size() == (bytes.size() - 44) / 2);
}
