#include "inference/engine/stages.hpp"
#include "inference/kernels/parallel.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <exception>
#include <utility>
#include <vector>

// The speech stages of duplex units and chat answers: choosing speech tokens, and turning windows of them into sound.
namespace parley::inference {

namespace {

double milliseconds_since(engine_clock::time_point begin) {
  return milliseconds(engine_clock::now() - begin);
}

} // namespace

/// Where the device can choose, in one call; elsewhere, and for turns that repeat what was chosen before, one token after
/// another.
void stages::choose_speech(std::span<const session_id> ids, int steps) {
  std::vector<session_id> there, here;
  for (auto* needs_it : sessions_.needing(stage::speak, ids))
    sessions_.step(*needs_it, [&](task& t) {
      const auto chooses = steps > 1 && speech::tts_chooses(*with_.speaker->models().tokens, t.speech_step());
      (chooses ? there : here).push_back(t.owner().id);
    });
  if (!there.empty()) choose_several(there, steps);
  for (auto step = 0; step < steps && !here.empty(); ++step)
    if (!choose_one(here)) break;
}

void stages::choose_several(std::span<const session_id> ids, int steps) {
  struct part {
    task* by;
    speech::tts_step step;
    std::vector<std::int64_t> chosen{};
  };
  std::vector<part> parts;
  parts.reserve(ids.size());
  for (auto* needs_it : sessions_.needing(stage::speak, ids))
    sessions_.step(*needs_it, [&](task& t) { parts.push_back({&t, t.speech_step()}); });
  auto call = [&](std::span<part> batch) {
    std::vector<speech::tts_step> turns;
    turns.reserve(batch.size());
    for (const auto& p : batch) turns.push_back(p.step);
    const auto begin = engine_clock::now();
    auto chosen = speech::tts_choose(*with_.speaker->models().tokens, turns, steps);
    const auto cost = milliseconds_since(begin);
    for (auto i = std::size_t{0}; i < batch.size(); ++i) {
      batch[i].chosen = std::move(chosen[i]);
      batch[i].by->costs().tts_ms += cost;
    }
  };
  for (auto& p : sessions_.isolated(std::move(parts), call))
    sessions_.step(*p.by, [&](task& t) {
      p.step.turn->take(p.chosen, *p.step.chance);
      t.on_speech_token();
    });
}

/// Returns whether any session needed one.
bool stages::choose_one(std::span<const session_id> ids) {
  struct part {
    task* by;
    speech::tts_step step;
    at::Tensor logits; ///< [1, codes]; undefined if the model need not run
    std::exception_ptr trouble{};
  };
  std::vector<part> parts;
  parts.reserve(ids.size());
  for (auto* needs_it : sessions_.needing(stage::speak, ids))
    sessions_.step(*needs_it, [&](task& t) { parts.push_back({&t, t.speech_step(), {}}); });
  if (parts.empty()) return false;
  auto call = [this](std::span<part> batch) {
    std::vector<speech::tts_step> steps;
    steps.reserve(batch.size());
    for (const auto& p : batch) steps.push_back(p.step);
    const auto begin = engine_clock::now();
    auto logits = speech::tts_logits(*with_.speaker->models().tokens, steps);
    const auto cost = milliseconds_since(begin);
    for (auto i = std::size_t{0}; i < batch.size(); ++i) {
      batch[i].logits = std::move(logits[i]);
      batch[i].by->costs().tts_ms += cost;
    }
  };
  auto chosen = sessions_.isolated(std::move(parts), call);
  // Each session draws from its own stream into its own turn.
  const auto begin = engine_clock::now();
  cpu::parallel_for(0, std::ssize(chosen), 1, [&](std::int64_t first, std::int64_t last) {
    const c10::InferenceMode guard;
    for (auto i = first; i < last; ++i) {
      auto& p = chosen[static_cast<std::size_t>(i)];
      try {
        speech::tts_take(p.step, p.logits);
      } catch (...) {
        p.trouble = std::current_exception();
      }
    }
  });
  const auto cost = milliseconds_since(begin);
  for (auto& p : chosen)
    sessions_.step(*p.by, [&](task& t) {
      if (p.trouble) std::rethrow_exception(p.trouble);
      t.costs().tts_ms += cost;
      t.on_speech_token();
    });
  return true;
}

void stages::make_sound(std::span<const session_id> ids) {
  struct part {
    task* by;
    speech::token2wav::job window;
    at::Tensor samples;
  };
  std::vector<part> parts;
  parts.reserve(ids.size());
  for (auto* needs_it : sessions_.needing(stage::sound, ids))
    sessions_.step(*needs_it, [&](task& t) { parts.push_back({&t, t.next_window(), {}}); });
  auto call = [this](std::span<part> batch) {
    std::vector<speech::token2wav::job> jobs;
    jobs.reserve(batch.size());
    for (const auto& p : batch) jobs.push_back(p.window);
    const auto begin = engine_clock::now();
    const auto sounds = with_.speaker->sound().run(jobs);
    const auto cost = milliseconds_since(begin);
    for (auto i = std::size_t{0}; i < batch.size(); ++i) {
      batch[i].samples = sounds[i];
      batch[i].by->costs().token2wav_ms += cost;
    }
  };
  for (auto& p : sessions_.isolated(std::move(parts), call))
    sessions_.step(*p.by, [&](task& t) { t.on_sound(std::move(p.samples)); });
}

} // namespace parley::inference
