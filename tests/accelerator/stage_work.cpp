#include "tests/accelerator/stage_work.hpp"

#include "inference/formats/wav_file.hpp"

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

device_work staged_model::llm_step(int sessions, synthetic::prompt of) const {
  constexpr std::int64_t prompt_rows = 100, more = 70;
  synthetic::llm_sessions batch(*thinks_, sessions, 512);
  batch.begin(of, prompt_rows);
  batch.feed(more);
  batch.feed(more);
  take_work();
  batch.feed(1);
  return take_work();
}

device_work staged_model::tts_step(int sessions) const {
  synthetic::tts_sessions batch(*speaks_, sessions);
  batch.begin(6);
  batch.step();
  take_work();
  batch.step();
  return take_work();
}

device_work staged_model::hear(int sessions) const {
  synthetic::hearing_sessions batch(*thinks_, sessions);
  batch.hear();
  take_work();
  batch.hear();
  return take_work();
}

device_work staged_model::window(int sessions) const {
  synthetic::sounding_sessions batch(*speaks_, voice_, sessions);
  batch.sound();
  take_work();
  batch.sound();
  return take_work();
}

} // namespace parley::inference::testing
