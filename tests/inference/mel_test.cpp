#include "inference/audio/mel.hpp"

#include "tests/inference/sounds.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <iostream>
#include <numeric>
#include <random>

using namespace parley::inference::audio;
using parley::inference::testing::some_sound;

namespace {

double difference(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return a.numel() == 0 ? 0.0 : (a - b).abs().max().item<double>();
}

/// What the reference does: transform the whole buffer again on each append (docs/model/thinker.md 3.3).
class whole_buffer_stream {
public:
  whole_buffer_stream(const mel_extractor& mel, mel_stream_config config) : mel_(mel), config_(config) {}

  at::Tensor append(std::span<const float> samples) {
    buffer_.insert(buffer_.end(), samples.begin(), samples.end());
    auto trigger = static_cast<std::size_t>(config_.trigger_seconds * sample_rate);
    auto slide = static_cast<std::ptrdiff_t>(config_.slide_seconds * sample_rate);
    if (config_.sliding_window && buffer_.size() >= trigger) {
      buffer_.erase(buffer_.begin(), buffer_.begin() + slide);
      base_ += slide / mel_hop_samples;
    }
    auto length = static_cast<std::int64_t>(buffer_.size());
    auto stable = base_ + (length < 200 ? 0 : (length - 200) / mel_hop_samples + 1);
    auto chunk = config_.chunk_samples() / mel_hop_samples;
    auto end = last_ + chunk + config_.redundancy_frames;
    if (stable < end) return {};
    auto first = std::max<std::int64_t>(0, last_ - config_.redundancy_frames);
    last_ += chunk;
    return features().narrow(0, first - base_, end - first);
  }

private:
  at::Tensor features() const {
    auto signal = at::from_blob(const_cast<float*>(buffer_.data()), {1, static_cast<std::int64_t>(buffer_.size())});
    auto padded = at::reflection_pad1d(signal, {200, 200}).squeeze(0);
    auto frames = padded.unfold(0, 400, 160).to(at::kFloat);
    frames = frames.narrow(0, 0, static_cast<std::int64_t>(buffer_.size()) / 160);
    auto spectrum = at::fft_rfft(frames * at::hann_window(400, at::kFloat)).abs().square();
    auto logs = at::matmul(spectrum, mel_.filters()).clamp_min(1e-10).log10();
    if (buffer_.size() >= 80000) logs = logs.clamp_min(logs.max().item<double>() - 8.0);
    return (logs + 4.0) / 4.0;
  }

  const mel_extractor& mel_;
  mel_stream_config config_;
  std::vector<float> buffer_;
  std::int64_t base_ = 0;
  std::int64_t last_ = 0;
};

} // namespace

TEST_CASE("the incremental stream equals transforming the whole buffer anew") {
  mel_extractor mel(80);
  mel_stream_config config;
  SECTION("duplex settings over two slides") {}
  SECTION("short window that slides often") {
    config.trigger_seconds = 6.0;
    config.slide_seconds = 1.5;
  }
  SECTION("no sliding window") {
    config.sliding_window = false;
  }
  SECTION("no redundancy, other lengths") {
    config.redundancy_frames = 0;
    config.chunk_ms = 640;
    config.first_chunk_ms = 700;
    config.trigger_seconds = 4.0;
    config.slide_seconds = 2.0;
  }
  auto sound = some_sound(3, 52 * sample_rate);
  mel_stream stream(config);
  whole_buffer_stream whole(mel, config);
  double worst = 0;
  int chunks = 0;
  for (std::size_t at = 0; at < sound.size(); ++chunks) {
    auto count = std::min<std::size_t>(static_cast<std::size_t>(stream.next_need()), sound.size() - at);
    mel_extractor::stream_input input{&stream, std::span(sound).subspan(at, count)};
    auto mine = mel.stream(std::span(&input, 1)).front();
    auto golden = whole.append(input.samples);
    REQUIRE(mine.mel.defined() == golden.defined());
    if (golden.defined()) worst = std::max(worst, difference(mine.mel, golden));
    at += count;
  }
  std::cout << "mel stream against whole buffer: " << chunks << " chunks, max difference " << worst << '\n';
  CHECK(worst < 1e-5);
}

TEST_CASE("samples may arrive in any portions as long as chunks are due at the same place") {
  mel_extractor mel(80);
  auto sound = some_sound(4, 35 * sample_rate);
  mel_stream whole;
  mel_stream cut;
  std::mt19937 random(5);
  double worst = 0;
  for (std::size_t at = 0;;) {
    auto need = static_cast<std::size_t>(whole.next_need());
    if (at + need > sound.size()) break;
    mel_extractor::stream_input input{&whole, std::span(sound).subspan(at, need)};
    auto golden = mel.stream(std::span(&input, 1)).front().mel;
    at::Tensor mine;
    for (std::size_t done = 0; done < need;) {
      auto part = std::min<std::size_t>(need - done, 1 + random() % 9000);
      mel_extractor::stream_input piece{&cut, std::span(sound).subspan(at + done, part)};
      auto out = mel.stream(std::span(&piece, 1)).front().mel;
      done += part;
      REQUIRE((!out.defined() || done + 200 >= need));
      if (out.defined()) mine = out;
    }
    REQUIRE(mine.defined());
    worst = std::max(worst, difference(mine, golden));
    at += need;
  }
  std::cout << "mel stream in portions: max difference " << worst << '\n';
  CHECK(worst < 1e-5);
}

TEST_CASE("streams in shuffled batches give what they give alone") {
  mel_extractor mel(80);
  constexpr std::size_t sessions = 7;
  std::vector<std::vector<float>> sounds;
  std::vector<mel_stream> alone(sessions);
  std::vector<mel_stream> together(sessions);
  std::vector<std::size_t> at(sessions, 0);
  for (unsigned i = 0; i < sessions; ++i) sounds.push_back(some_sound(10 + i, 40 * sample_rate));
  std::mt19937 random(6);
  double worst = 0;
  int compared = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<std::size_t> members(sessions);
    std::iota(members.begin(), members.end(), 0U);
    std::shuffle(members.begin(), members.end(), random);
    members.resize(1 + random() % sessions);
    std::vector<mel_extractor::stream_input> inputs;
    std::vector<at::Tensor> goldens;
    for (auto i : members) {
      auto need = static_cast<std::size_t>(together[i].next_need());
      if (at[i] + need > sounds[i].size()) at[i] = 0;
      auto samples = std::span(sounds[i]).subspan(at[i], need);
      at[i] += need;
      inputs.push_back({&together[i], samples});
      mel_extractor::stream_input single{&alone[i], samples};
      goldens.push_back(mel.stream(std::span(&single, 1)).front().mel);
    }
    auto results = mel.stream(inputs);
    for (std::size_t i = 0; i < results.size(); ++i, ++compared)
      worst = std::max(worst, difference(results[i].mel, goldens[i]));
  }
  std::cout << "mel stream alone and in batches: " << compared << " chunks, max difference " << worst << '\n';
  CHECK(worst <= 1e-5);
}

TEST_CASE("clips in batches give what they give alone") {
  mel_extractor mel(80);
  std::vector<std::vector<float>> clips{
      some_sound(1, 16000), some_sound(2, 1), some_sound(3, 31 * sample_rate), {}, some_sound(5, 30 * sample_rate),
      some_sound(6, 200)};
  std::vector<std::span<const float>> spans(clips.begin(), clips.end());
  auto together = mel.offline(spans);
  REQUIRE(together.size() == clips.size());
  double worst = 0;
  for (std::size_t i = 0; i < clips.size(); ++i) {
    auto alone = mel.offline(clips[i]);
    REQUIRE(alone.size() == together[i].size());
    for (std::size_t k = 0; k < alone.size(); ++k) worst = std::max(worst, difference(alone[k], together[i][k]));
  }
  CHECK(together[1].front().size(0) == 1);
  CHECK(together[2].size() == 2);
  CHECK(together[2][1].size(0) == 100);
  CHECK(together[3].empty());
  CHECK(together[4].size() == 1);
  CHECK(together[4].front().size(0) == 3000);
  std::cout << "mel clips alone and in batches: max difference " << worst << '\n';
  CHECK(worst <= 1e-5);
}

TEST_CASE("a stream's state stays small") {
  mel_extractor mel(80);
  mel_stream stream;
  auto sound = some_sound(7, 20 * sample_rate);
  std::size_t largest = 0;
  for (int unit = 0; unit < 100; ++unit) {
    auto need = static_cast<std::size_t>(stream.next_need());
    mel_extractor::stream_input input{&stream, std::span(sound).subspan(0, need)};
    CHECK(mel.stream(std::span(&input, 1)).front().mel.defined());
    largest = std::max(largest, (stream.tail.size() + stream.power.size()) * sizeof(float));
    CHECK(stream.blocks.size() <= 4);
  }
  CHECK(largest < 50'000);
}
