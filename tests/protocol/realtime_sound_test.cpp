#include "protocol/media/base64.hpp"
#include "protocol/openai/shared/audio_format.hpp"
#include "protocol/speech/sound.hpp"
#include "protocol/speech/voice_activity.hpp"
#include "tests/protocol/wire_material.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

using namespace parley::protocol;
using namespace parley::protocol::openai;
using namespace parley::protocol::speech;

namespace {

std::string coded(const std::string& bytes) {
  std::string out;
  base64::append(std::as_bytes(std::span(bytes)), out);
  return out;
}

std::vector<float> sine(double seconds, int rate, double hertz, float amplitude = 0.5f) {
  std::vector<float> out(static_cast<std::size_t>(seconds * rate));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = amplitude * static_cast<float>(std::sin(2 * 3.14159265358979 * hertz * static_cast<double>(i) / rate));
  return out;
}

double rms(std::span<const float> of) {
  double sum = 0;
  for (const float x : of) sum += static_cast<double>(x) * x;
  return std::sqrt(sum / static_cast<double>(of.size()));
}

const sound_format pcm16{};
const sound_format pcm16_ours{sound_coding::pcm16, 16'000};
const sound_format mu{sound_coding::mu_law, 8000};
const sound_format a{sound_coding::a_law, 8000};

/// 24 kHz samples through a format and back, at 16 kHz.
std::vector<float> there_and_back(const sound_format& format, const std::vector<float>& samples) {
  sound_encoder encode(format);
  sound_decoder decode(format);
  std::vector<float> out;
  const auto whole = std::span(samples);
  for (std::size_t at = 0; at < whole.size(); at += 777) // any length
    REQUIRE(decode.feed(encode.feed(whole.subspan(at, std::min<std::size_t>(777, whole.size() - at))), out));
  REQUIRE(decode.feed(encode.finish(), out));
  return out;
}

} // namespace

TEST_CASE("formats have the names, and the rates, that clients know") {
  CHECK(audio_format_of("audio/pcm", std::nullopt) == pcm16);
  CHECK(audio_format_of("audio/pcm", 16'000) == pcm16_ours);
  CHECK(audio_format_of("audio/pcmu", 8000) == mu);
  CHECK_FALSE(audio_format_of("audio/pcm", 44'100));
  CHECK_FALSE(audio_format_of("audio/opus", std::nullopt));
  CHECK(encode_format(pcm16) == R"({"type":"audio/pcm","rate":24000})");
  CHECK(encode_format(a) == R"({"type":"audio/pcma"})");
}

TEST_CASE("G.711 has the values of the standard's tables") {
  const auto value = [](const sound_format& format, char code) {
    // A constant passes the resampler as it is, away from the ends.
    sound_decoder decode(format);
    std::vector<float> out;
    REQUIRE(decode.feed(coded(std::string(4000, code)), out));
    return std::lround(out[out.size() / 2] * 32'768);
  };
  CHECK(value(mu, '\x00') == Approx(-32'124).margin(3));
  CHECK(value(mu, '\x80') == Approx(32'124).margin(3));
  CHECK(value(mu, '\xFF') == 0);
  CHECK(value(a, '\x2A') == Approx(-32'256).margin(3));
  CHECK(value(a, '\xAA') == Approx(32'256).margin(3));
  CHECK(value(a, '\xD5') == 8);
}

TEST_CASE("sound survives each format") {
  const auto samples = sine(1, model_output_rate, 440);
  for (const auto& format : {pcm16, pcm16_ours, mu, a}) {
    const auto back = there_and_back(format, samples);
    CHECK(back.size() == Approx(16'000).margin(1200));
    const auto middle = std::span(back).subspan(2000, 8000);
    CHECK(rms(middle) == Approx(0.3535).epsilon(0.02));
    const auto wanted = sine(1, model_input_rate, 440);
    double error = 0;
    for (std::size_t i = 2000; i < 10'000; ++i) error += std::pow(back[i] - wanted[i], 2.0);
    const double noise = std::sqrt(error / 8000) / 0.3535;
    CHECK(noise < (format.coding == sound_coding::pcm16 ? 0.002 : 0.03));
  }
}

TEST_CASE("24 kHz becomes 16 kHz: speech passes, what would fold does not") {
  for (const double hertz : {50.0, 440.0, 3000.0, 6500.0, 8200.0, 9500.0, 11'900.0}) {
    const auto in = sine(1, model_output_rate, hertz);
    two_thirds whole, pieces;
    std::vector<float> out, same;
    whole.feed(in, out);
    for (auto rest = std::span(in); !rest.empty();) { // any length
      const auto piece = rest.first(std::min<std::size_t>(rest.size(), 333));
      pieces.feed(piece, same);
      rest = rest.subspan(piece.size());
    }
    INFO(hertz);
    CHECK(out == same);
    CHECK(out.size() == Approx(16'000).margin(100));
    const auto middle = std::span(out).subspan(1000, 14'000);
    if (hertz > 8000) {
      CHECK(rms(middle) < 0.3535 * 0.0005);
      continue;
    }
    const auto wanted = sine(1, model_input_rate, hertz); // in step: there is no delay
    double error = 0;
    for (std::size_t i = 1000; i < 15'000; ++i) error += std::pow(out[i] - wanted[i], 2.0);
    CHECK(std::sqrt(error / 14'000) < 0.3535 * 0.002);
  }
}

TEST_CASE("loud samples saturate, and wrong ones are silence") {
  sound_encoder encode(pcm16);
  const std::vector<float> samples{2.0f, -2.0f, std::nanf(""), 0.5f};
  const auto bytes = base64::decode(encode.feed(samples));
  REQUIRE(bytes);
  CHECK(*bytes == std::string("\xFF\x7F\x00\x80\x00\x00\x00\x40", 8));
}

TEST_CASE("an append may have any length, but whole samples") {
  sound_decoder decode(pcm16);
  std::vector<float> out;
  CHECK(decode.feed("", out) == 0u);
  CHECK(decode.feed("AAA=", out) == 1u);
  CHECK_FALSE(decode.feed("AAAA", out)); // three bytes
  CHECK(decode.feed("AAAA", out).error().find("even number of bytes") != std::string::npos);
  CHECK_FALSE(decode.feed("A\nAA", out));
}

TEST_CASE("speech is found above the noise of the room") {
  std::mt19937 random(1);
  std::normal_distribution<float> noise(0, 0.01f); // -40 dBFS
  const auto add_noise = [&](std::vector<float> to) {
    for (auto& x : to) x += noise(random);
    return to;
  };
  turn_finder finder(std::make_unique<loudness_detector>());
  std::vector<turn_edge> edges;
  const auto hear = [&](const std::vector<float>& samples) {
    for (auto rest = std::span(samples); !rest.empty();) {
      const auto found = finder.feed(rest, {});
      if (found.edge) edges.push_back(*found.edge);
      rest = rest.subspan(found.used);
    }
  };
  hear(add_noise(std::vector<float>(16'000 * 20)));
  edges.clear(); // it may take the first noise for speech
  const auto from = finder.now_ms();
  hear(add_noise(sine(1, 16'000, 200, 0.2f)));
  hear(add_noise(std::vector<float>(16'000)));
  hear(add_noise(sine(0.02, 16'000, 200, 0.2f))); // a click
  hear(add_noise(std::vector<float>(16'000)));
  REQUIRE(edges.size() == 2);
  CHECK(edges[0].begins);
  CHECK(edges[0].at_ms == from);
  CHECK_FALSE(edges[1].begins);
  CHECK(edges[1].at_ms == Approx(from + 1500).margin(40));
}

TEST_CASE("short pauses between words do not count against a turn, longer ones do with all of their length") {
  const auto begins = [](double pause) {
    turn_finder finder(std::make_unique<loudness_detector>());
    const turn_rules rules{.onset = {.speech_ms = 340, .pause_ms = 300}};
    const auto hear = [&](const std::vector<float>& samples) { return finder.feed(samples, rules).edge.has_value(); };
    CHECK_FALSE(hear(std::vector<float>(16'000)));
    CHECK_FALSE(hear(sine(0.2, 16'000, 200, 0.2f)));
    CHECK_FALSE(hear(std::vector<float>(static_cast<std::size_t>(pause * 16'000))));
    return hear(sine(0.2, 16'000, 200, 0.2f));
  };
  CHECK(begins(0.1));
  CHECK(begins(0.28));
  CHECK_FALSE(begins(0.36));
}

TEST_CASE("a file where a stream of samples is expected is refused by its kind, and leaves the stream as it was") {
  std::vector<float> out;
  sound_decoder decode({sound_coding::pcm16, 16'000});
  const auto wav = test::to_base64(test::wav_file({}, std::string(3'200, 'x')));
  const auto refused = decode.feed(wav, out);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == "a WAV file, where the samples alone are expected.");
  CHECK(out.empty());
  const auto text = test::to_base64(std::string(3'200, '\x10'));
  CHECK(decode.feed(text.substr(0, 76) + "\n" + text.substr(76) + "\r\n", out) == 1'600u);
  CHECK(out.size() == 1'600);
}

TEST_CASE("a quiet line in G.711 that looks like two frames of MP3 is heard") {
  // 96 kbit/s at 32 kHz: a frame has 432 bytes.
  std::string line(800, '\x7F');
  for (const std::size_t at : {0u, 432u}) line.replace(at, 3, "\xFF\xFB\x78");
  std::vector<float> out;
  CHECK(sound_decoder({sound_coding::mu_law, 8'000}).feed(coded(line), out) == 800u);
  CHECK_FALSE(sound_decoder({sound_coding::pcm16, 24'000}).feed(coded(line), out));
  CHECK_FALSE(sound_decoder({sound_coding::mu_law, 8'000}).feed(coded("ID3\3" + std::string(800, '\0')), out));
}
