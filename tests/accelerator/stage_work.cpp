#include "tests/accelerator/stage_work.hpp"

#include "inference/engine/scheduler.hpp"
#include "inference/formats/wav_file.hpp"
#include "inference/speech/speech_driver.hpp"

#include <deque>
#include <span>
#include <vector>

namespace parley::inference::testing {

namespace {

constexpr const char* folder = "models/tiny-omni";

} // namespace

staged_model::speaker::speaker(const char* model)
    : by(std::make_unique<const talker>(checkpoint::open(model), model_config::open(model), quirks{}, at::kFloat,
                                        pretend_device())) {
  const auto wav = speech::read_wav_file("models/tiny-omni/assets/default_voice.wav");
  voice = by->sound().prepare(by->sound().ear().hear(wav.samples, wav.rate));
}

staged_model::staged_model() : speaks_(folder), speaks_as_before_("models/nano") {
  const auto weights = checkpoint::open(folder);
  const auto sizes = model_config::open(folder);
  thinks_ = std::make_unique<const thinker>(weights, sizes, at::kFloat, pretend_device());
  thinks_in_halves_ = std::make_unique<const thinker>(weights, sizes, at::kBFloat16, pretend_device());
}

device_work staged_model::llm_step(int sessions, const llm_call& how) const {
  constexpr std::int64_t prompt_rows = 100, more = 70;
  synthetic::llm_sessions batch(how.halves ? *thinks_in_halves_ : *thinks_, sessions, 512);
  batch.begin(how.of, prompt_rows);
  batch.feed(more);
  batch.feed(more);
  take_work();
  batch.feed(how.rows);
  return take_work();
}

device_work staged_model::tts_step(int sessions) const {
  synthetic::tts_sessions batch(*speaks_.by, sessions);
  batch.begin(6);
  batch.step();
  take_work();
  batch.step();
  return take_work();
}

device_work staged_model::tts_pass(int sessions) const {
  synthetic::tts_sessions batch(*speaks_.by, sessions);
  const auto steps = accelerator_limits().speech_steps;
  batch.begin(6);
  batch.step(steps);
  take_work();
  batch.step(steps);
  return take_work();
}

device_work staged_model::hear(int sessions) const {
  synthetic::hearing_sessions batch(*thinks_, sessions);
  batch.hear();
  take_work();
  batch.hear();
  return take_work();
}

device_work staged_model::speaker::window(int sessions, windows of) const {
  std::vector<speech::token2wav::stream> streams;
  for (auto i = 0; i < sessions; ++i) streams.push_back(by->sound().start(voice));
  const std::vector<std::int64_t> tokens(speech::window_tokens, 100);
  std::deque<random_stream> chances;
  for (auto i = 0; i < sessions; ++i) chances.emplace_back(static_cast<std::uint64_t>(i), substream::noise);
  auto extend = [&](bool last) {
    std::vector<speech::token2wav::job> jobs;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      const auto fewer = of == windows::uneven ? i % 8 * 2 : 0;
      jobs.push_back(
          {&streams[i], std::span(tokens).first(tokens.size() - fewer), last && i % 4 == 3, &chances[i], {}});
    }
    by->sound().run(jobs);
  };
  constexpr auto until_trimmed = 4; // from then on, every window drops what is oldest
  for (auto n = 0; n < until_trimmed; ++n) extend(false);
  take_work();
  extend(of == windows::uneven);
  return take_work();
}

device_work staged_model::window(int sessions, windows of) const {
  return speaks_.window(sessions, of);
}

device_work staged_model::original_window(int sessions, windows of) const {
  return speaks_as_before_.window(sessions, of);
}

} // namespace parley::inference::testing
