#include "inference/engine/synthetic_sessions.hpp"

#include "inference/speech/speech_driver.hpp"

#include <ATen/ATen.h>

#include <span>

namespace parley::inference::synthetic {

namespace {

constexpr token_id any_token = 9;
constexpr float any_sample = 0.01F;

std::size_t size_of(int sessions) {
  return static_cast<std::size_t>(sessions);
}

} // namespace

llm_sessions::llm_sessions(const thinker& model, int sessions, int rows)
    : model_(model), pool_(model.config().llm, sessions + 1, rows, model.llm().dtype(), model.llm().device()),
      count_(size_of(sessions)) {
  const auto device = model.llm().device();
  if (!device.is_cpu()) shortlist_.emplace(any_token, std::vector<token_id>{any_token}, device);
}

void llm_sessions::begin(prompt how, std::int64_t rows) {
  if (how == prompt::own) {
    while (caches_.size() < count_) caches_.push_back(pool_.open());
    if (rows > 0) feed(rows);
    return;
  }
  caches_.push_back(pool_.open());
  feed(rows);
  while (caches_.size() < count_) caches_.push_back(caches_.front().fork());
}

void llm_sessions::remember(std::int64_t rows) {
  const auto& llm = model_.config().llm;
  llm::kv_segment past;
  past.keys = at::zeros({llm.layers, rows, llm.kv_heads, llm.head_dim},
                        at::TensorOptions(model_.llm().dtype()).device(model_.llm().device()));
  past.values = past.keys;
  for (auto& cache : caches_) {
    past.begin = cache.length();
    cache.append(past, model_.llm().positions());
  }
}

void llm_sessions::feed(std::int64_t rows, std::int64_t of_the_last) {
  std::vector<llm::sequence_rows> sequences;
  std::vector<std::int64_t> last;
  std::int64_t sum = 0;
  for (auto& cache : caches_) {
    sequences.push_back({&cache, &cache == &caches_.back() && of_the_last > 0 ? of_the_last : rows});
    sum += sequences.back().rows;
    last.push_back(sum - 1);
  }
  const std::vector<token_id> ids(static_cast<std::size_t>(sum), any_token);
  const auto& llm = model_.llm();
  const auto logits = llm.logits(llm.forward({ids, {}}, sequences, last));
  if (shortlist_)
    shortlist_->of(logits);
  else
    logits.to(at::kCPU);
}

hearing_sessions::hearing_sessions(const thinker& model, int sessions) : model_(model), streams_(size_of(sessions)) {
  while (caches_.size() < streams_.size()) caches_.push_back(model.make_encoder_cache());
}

at::Tensor hearing_sessions::hear() {
  const std::vector<float> second(static_cast<std::size_t>(streams_.front().next_need()), any_sample);
  std::vector<thinker::fresh_sound> sounds;
  for (std::size_t i = 0; i < streams_.size(); ++i)
    sounds.push_back({&streams_[i], &caches_[i], second, begun_ ? 1 : 0});
  begun_ = true;
  return model_.hear(sounds).front();
}

tts_sessions::tts_sessions(const talker& speaker, int sessions, speech::tts_form form) : speaker_(speaker) {
  const auto& models = speaker.models();
  for (auto i = 0; i < sessions; ++i) {
    turns_.emplace_back(*models.embeddings, *models.tokens, form, speech::tts_sampling{});
    chances_.emplace_back(static_cast<std::uint64_t>(i), substream::speech_tokens);
    steps_.push_back({&turns_.back(), &chances_.back()});
  }
}

void tts_sessions::begin(std::int64_t words, bool turn_begins) {
  for (auto& turn : turns_)
    turn.begin(speaker_.models().embeddings->audio_bos().expand({words, -1}),
               speech::duplex_limits(turn_begins, false));
}

void tts_sessions::step(int count) {
  const auto& model = *speaker_.models().tokens;
  if (count == 1 || !model.chooses()) return speech::tts_advance(model, steps_);
  std::vector<speech::tts_step> running;
  for (const auto& step : steps_)
    if (step.turn->running()) running.push_back(step);
  const auto chosen = speech::tts_choose(model, running, count);
  for (std::size_t i = 0; i < running.size(); ++i) running[i].turn->take(chosen[i], *running[i].chance);
}

sounding_sessions::sounding_sessions(const talker& speaker, const std::shared_ptr<const speech::voice>& voice,
                                     int sessions)
    : speaker_(speaker), streams_(size_of(sessions), speaker.sound().start(voice)),
      tokens_(speech::window_tokens, speech::silence_speech_token), chance_(1, substream::noise) {}

void sounding_sessions::sound() {
  std::vector<speech::token2wav::job> jobs;
  for (auto& stream : streams_) jobs.push_back({&stream, tokens_, false, &chance_, {}});
  speaker_.sound().run(jobs);
}

} // namespace parley::inference::synthetic
