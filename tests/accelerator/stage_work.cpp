#include "tests/accelerator/stage_work.hpp"

#include "inference/formats/wav_file.hpp"
#include "inference/tts/speech_driver.hpp"
#include "inference/tts/turn.hpp"

#include <ATen/ATen.h>

#include <deque>
#include <vector>

namespace parley::inference::testing {

namespace {

constexpr const char* folder = "models/tiny-omni";

} // namespace

staged_model::staged_model() {
  const auto weights = checkpoint::open(folder);
  const auto sizes = model_config::open(folder);
  thinks_ = std::make_unique<const thinker>(weights, sizes, at::kFloat, pretend_device());
  speaks_ = std::make_unique<const talker>(weights, sizes, quirks{}, at::kFloat, pretend_device());
  const auto wav = speech::read_wav_file("models/tiny-omni/assets/default_voice.wav");
  voice_ = speaks_->sound().prepare(speaks_->sound().ear().hear(wav.samples, wav.rate));
}

device_work staged_model::llm_step(int sessions, prompt of) const {
  constexpr std::int64_t prompt_rows = 100, more = 70;
  const auto& model = thinks_->llm();
  const llm::kv_pool pool(thinks_->config().llm, sessions + 2, 512, at::kFloat, pretend_device());
  std::vector<llm::kv_cache> caches;
  auto feed = [&](std::int64_t rows) {
    std::vector<llm::sequence_rows> sequences;
    std::vector<std::int64_t> last;
    for (auto& cache : caches) {
      sequences.push_back({&cache, rows});
      last.push_back(std::ssize(sequences) * rows - 1);
    }
    const std::vector<token_id> ids(static_cast<std::size_t>(rows * std::ssize(caches)), 9);
    model.logits(model.forward(model.embed(ids), sequences, last)).to(at::kCPU);
  };
  if (of == prompt::shared) {
    caches.push_back(pool.open());
    feed(prompt_rows);
    while (std::ssize(caches) < sessions) caches.push_back(caches.front().fork());
  } else {
    while (std::ssize(caches) < sessions) caches.push_back(pool.open());
    feed(prompt_rows);
  }
  feed(more);
  feed(more);
  take_work();
  feed(1);
  return take_work();
}

device_work staged_model::tts_step(int sessions) const {
  const auto& models = speaks_->models();
  std::deque<speech::tts_turn> turns;
  random_stream chance(1, substream::speech_tokens);
  std::vector<speech::tts_step> steps;
  for (auto i = 0; i < sessions; ++i) {
    turns.emplace_back(*models.embeddings, *models.tokens, speech::tts_form::duplex, speech::tts_sampling{});
    turns.back().begin(models.embeddings->audio_bos().expand({6, -1}), speech::duplex_limits(false, false));
    steps.push_back({&turns.back(), &chance});
  }
  speech::tts_advance(*models.tokens, steps);
  take_work();
  speech::tts_advance(*models.tokens, steps);
  return take_work();
}

device_work staged_model::hear(int sessions) const {
  std::vector<audio::mel_stream> streams(static_cast<std::size_t>(sessions));
  std::vector<audio::encoder_cache> caches;
  for (auto i = 0; i < sessions; ++i) caches.push_back(thinks_->make_encoder_cache());
  auto second = [&](int drop_front) {
    const std::vector<float> sound(static_cast<std::size_t>(streams.front().next_need()), 0.01F);
    std::vector<thinker::fresh_sound> sounds;
    for (std::size_t i = 0; i < streams.size(); ++i) sounds.push_back({&streams[i], &caches[i], sound, drop_front});
    thinks_->hear(sounds);
  };
  second(0);
  take_work();
  second(1);
  return take_work();
}

device_work staged_model::window(int sessions) const {
  std::vector<speech::token2wav::stream> streams;
  for (auto i = 0; i < sessions; ++i) streams.push_back(speaks_->sound().start(voice_));
  const std::vector<std::int64_t> tokens(speech::window_tokens, 100);
  random_stream chance(1, substream::noise);
  auto extend = [&] {
    std::vector<speech::token2wav::job> jobs;
    for (auto& stream : streams) jobs.push_back({&stream, tokens, false, &chance, {}});
    speaks_->sound().run(jobs);
  };
  extend();
  take_work();
  extend();
  return take_work();
}

} // namespace parley::inference::testing
