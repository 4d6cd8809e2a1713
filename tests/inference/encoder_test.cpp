#include "inference/audio/encoder.hpp"

#include "inference/audio/mel.hpp"
#include "inference/audio/projector.hpp"
#include "tests/inference/sounds.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <iostream>
#include <numeric>
#include <random>

using namespace parley::inference;
using namespace parley::inference::audio;
using parley::inference::testing::some_sound;

namespace {

struct tiny_audio {
  model_config config = model_config::open("tests/data/checkpoints/tiny");
  checkpoint weights = checkpoint::open("tests/data/checkpoints/tiny");
  mel_extractor mel{config.audio.mel_bins};
  encoder encode{config.audio, weights.view("apm.")};
  projector project{config.audio.pool_step, weights.view("audio_projection_layer.")};
};

double difference(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return a.numel() == 0 ? 0.0 : (a - b).abs().max().item<double>();
}

std::vector<at::Tensor> unit_mels(const tiny_audio& model, unsigned seed, int units) {
  auto sound = some_sound(seed, static_cast<std::size_t>(units + 1) * sample_rate);
  mel_stream stream;
  std::vector<at::Tensor> result;
  for (std::size_t at = 0; static_cast<int>(result.size()) < units;) {
    auto need = static_cast<std::size_t>(stream.next_need());
    mel_extractor::stream_input input{&stream, std::span(sound).subspan(at, need)};
    result.push_back(model.mel.stream(std::span(&input, 1)).front().mel);
    at += need;
  }
  return result;
}

} // namespace

TEST_CASE("sessions of different ages, in shuffled batches, are encoded as alone, through the cache reset") {
  at::InferenceMode no_autograd;
  tiny_audio model;
  constexpr int sessions = 5;
  constexpr int units = 32; // the cache is emptied before the 30th
  std::vector<std::vector<at::Tensor>> mels;
  for (unsigned i = 0; i < sessions; ++i) mels.push_back(unit_mels(model, 20 + i, units));

  auto chunk_of = [&](std::size_t session, std::size_t unit, encoder_cache& cache) {
    return stream_chunk{&cache, mels[session][unit], unit == 0 ? 0 : 1, 1};
  };
  std::vector<std::vector<at::Tensor>> alone(sessions);
  for (std::size_t i = 0; i < sessions; ++i) {
    auto cache = model.encode.make_cache();
    for (std::size_t unit = 0; unit < units; ++unit) {
      auto chunk = chunk_of(i, unit, cache);
      auto encoded = model.encode.stream(std::span(&chunk, 1));
      auto frames = mels[i][unit].size(0);
      alone[i].push_back(model.project.project(encoded, std::span(&frames, 1)).front());
      CHECK(alone[i].back().size(0) == 10);
    }
    CHECK(cache.length == (units - 29) * 50);
  }

  std::mt19937 random(7);
  std::vector<encoder_cache> caches;
  for (int i = 0; i < sessions; ++i) caches.push_back(model.encode.make_cache());
  std::vector<std::size_t> next(sessions, 0);
  double worst = 0;
  int compared = 0;
  for (;;) {
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < sessions; ++i)
      if (next[i] < units) members.push_back(i);
    if (members.empty()) break;
    std::shuffle(members.begin(), members.end(), random);
    members.resize(1 + random() % members.size());
    std::vector<stream_chunk> chunks;
    std::vector<std::int64_t> frames;
    for (auto i : members) {
      chunks.push_back(chunk_of(i, next[i], caches[i]));
      frames.push_back(chunks.back().mel.size(0));
    }
    auto rows = model.project.project(model.encode.stream(chunks), frames);
    for (std::size_t k = 0; k < members.size(); ++k, ++compared)
      worst = std::max(worst, difference(rows[k], alone[members[k]][next[members[k]]++]));
  }
  std::cout << "encoder stream alone and in batches: " << compared << " units, max difference " << worst << '\n';
  CHECK(worst <= 1e-5);
}

TEST_CASE("clips in batches are encoded as alone") {
  at::InferenceMode no_autograd;
  tiny_audio model;
  std::vector<clip_piece> pieces;
  for (auto samples : {16000, 1440, 1600, 160, 37524, 91314, 480000, 9000}) {
    auto mel = model.mel.offline(some_sound(static_cast<unsigned>(samples), static_cast<std::size_t>(samples))).front();
    pieces.push_back({mel, mel.size(0)});
  }
  auto encode = [&](std::span<const clip_piece> some) {
    std::vector<std::int64_t> frames;
    for (const auto& p : some) frames.push_back(p.frames);
    return model.project.project(model.encode.offline(some), frames);
  };
  double worst = 0;
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937 random(8);
  for (int round = 0; round < 3; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    std::vector<clip_piece> shuffled;
    for (auto i : order) shuffled.push_back(pieces[i]);
    auto together = encode(shuffled);
    for (std::size_t k = 0; k < order.size(); ++k) {
      auto alone = encode(std::span(&pieces[order[k]], 1)).front();
      CHECK(alone.size(0) == audio_tokens(pieces[order[k]].frames, 5));
      worst = std::max(worst, difference(together[k], alone));
    }
  }
  std::cout << "encoder clips alone and in batches: max difference " << worst << '\n';
  CHECK(worst <= 1e-5);
}

TEST_CASE("tokens of a clip") {
  CHECK(audio_tokens(0, 5) == 0);
  CHECK(audio_tokens(8, 5) == 0);
  CHECK(audio_tokens(9, 5) == 1);
  CHECK(audio_tokens(102, 5) == 10);
  CHECK(audio_tokens(104, 5) == 10);
  CHECK(audio_tokens(3000, 5) == 300);
}

TEST_CASE("a cleared cache is as new, whatever it held") {
  at::InferenceMode no_autograd;
  tiny_audio model;
  auto mels = unit_mels(model, 40, 3);
  auto used = model.encode.make_cache();
  used.own_keys.fill_(1e9);
  used.own_values.fill_(-1e9);
  used.length = 700;
  used.clear();
  auto fresh = model.encode.make_cache();
  for (std::size_t unit = 0; unit < mels.size(); ++unit) {
    stream_chunk a{&used, mels[unit], unit == 0 ? 0 : 1, 1};
    stream_chunk b{&fresh, mels[unit], unit == 0 ? 0 : 1, 1};
    CHECK(at::equal(model.encode.stream(std::span(&a, 1)).front(), model.encode.stream(std::span(&b, 1)).front()));
  }
}

TEST_CASE("sound longer than the positions is refused, not cut") {
  at::InferenceMode no_autograd;
  tiny_audio model;
  clip_piece piece{at::zeros({3002, 80}), 3002};
  CHECK_THROWS_WITH(model.encode.offline(std::span(&piece, 1)), Catch::Contains("1500 positions"));
  auto cache = model.encode.make_cache();
  stream_chunk chunk{&cache, at::zeros({3, 80}), 1, 1};
  CHECK_THROWS_AS(model.encode.stream(std::span(&chunk, 1)), std::runtime_error);
}

TEST_CASE("weights that do not fit the configuration are refused by name") {
  tiny_audio model;
  auto wrong = model.config.audio;
  wrong.ffn_size = 99;
  CHECK_THROWS_WITH(encoder(wrong, model.weights.view("apm.")), Catch::Contains("apm.layers.0.fc1.weight"));
}
