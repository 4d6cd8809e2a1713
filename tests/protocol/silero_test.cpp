#include "protocol/media/wav.hpp"
#include "protocol/speech/silero/network.hpp"
#include "protocol/speech/silero_detector.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

using namespace parley::protocol::speech;

namespace {

std::vector<float> question() {
  std::ifstream in("tests/data/question.wav", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  return parley::protocol::read_wav(bytes).value();
}

/// The share of frames that are taken for speech.
double share_of_speech(speech_detector& detector, std::span<const float> samples) {
  int frames = 0, speech = 0;
  for (; samples.size() >= frame_samples; samples = samples.subspan(frame_samples)) {
    ++frames;
    speech += detector.is_speech(samples.first(frame_samples), 0.5) ? 1 : 0;
  }
  return static_cast<double>(speech) / frames;
}

std::vector<float> noise(double seconds, float amplitude) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, amplitude);
  std::vector<float> out(static_cast<std::size_t>(seconds * 16'000));
  for (auto& x : out) x = normal(random);
  return out;
}

} // namespace

TEST_CASE("Silero's network gives what the original gives") {
  // Recorded with silero-vad 6.2.3; ours has its weights as float16.
  std::ifstream in("tests/data/silero_question.txt");
  const std::vector<double> wanted(std::istream_iterator<double>(in), {});
  const auto samples = question();
  REQUIRE(wanted.size() == samples.size() / silero::window);
  silero::network network;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    INFO(i);
    const auto window = std::span(samples).subspan(i * silero::window).first<silero::window>();
    CHECK(network.step(window) == Approx(wanted[i]).margin(0.03));
  }
}

TEST_CASE("speech is found, in quiet and in noise") {
  auto samples = question();
  silero_detector quiet, noisy;
  CHECK(share_of_speech(quiet, samples) > 0.6);
  const auto around = noise(static_cast<double>(samples.size()) / 16'000, 0.02f);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] += around[i];
  CHECK(share_of_speech(noisy, samples) > 0.6);
}

TEST_CASE("what is loud but no speech is not taken for it") {
  std::vector<float> tone(16'000 * 4), clicks(16'000 * 4);
  for (std::size_t i = 0; i < tone.size(); ++i)
    tone[i] = i / 8000 % 2 == 0 ? 0.3f * static_cast<float>(std::sin(0.2 * static_cast<double>(i))) : 0.0f;
  for (std::size_t i = 0; i < clicks.size(); i += 3000)
    for (std::size_t k = 0; k < 200; ++k)
      clicks[i + k] = (k % 2 == 0 ? 0.5f : -0.5f) * std::exp(-0.02f * static_cast<float>(k));
  for (const auto& samples : {tone, clicks, noise(4, 0.2f)}) {
    silero_detector detector;
    CHECK(share_of_speech(detector, samples) < 0.05);
    loudness_detector rule;
    CHECK(share_of_speech(rule, samples) > 0.01); // so this is what the network is for
  }
}

TEST_CASE("a detector that slept through silence hears the first word") {
  silero_detector detector;
  CHECK(share_of_speech(detector, noise(20, 0.0005f)) == 0);
  CHECK(share_of_speech(detector, question()) > 0.6);
}
