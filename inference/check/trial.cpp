#include "inference/check/trial.hpp"

#include "inference/engine.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <vector>

namespace parley::inference::check {

namespace {

constexpr session_id ear = 1, mouth = 2;

/// Collects the engine's answers.
struct answers {
  std::vector<event> events;

  template<class T>
  std::vector<const T*> all() const {
    std::vector<const T*> found;
    for (const auto& e : events)
      if (const auto* one = std::get_if<T>(&e)) found.push_back(one);
    return found;
  }
};

std::string in_seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f s", seconds);
  return text;
}

/// Runs the engine until it has nothing to do; returns the seconds that took.
double work(engine& model) {
  const auto begin = std::chrono::steady_clock::now();
  while (model.advance()) {
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void judge_failures(const answers& heard, findings& out) {
  for (const auto* failure : heard.all<failed>()) out.fault("it failed: " + failure->message, "");
}

void listen_once(engine& model, answers& heard, findings& out) {
  duplex_options options;
  options.force_listen_count = 0;
  options.sampling.greedy = true;
  model.handle(open_duplex{ear, "You are a helpful assistant.", options, nullptr, nullptr, 1});
  work(model);
  model.handle(submit_unit{{std::make_shared<const std::vector<float>>(16000), {}}, ear, 0});
  const auto seconds = work(model);
  const auto steps = heard.all<step_output>();
  if (steps.empty()) return;
  const bool listened = steps.front()->kind == output_kind::listen;
  if (listened)
    out.pass("a second of silence: it listens on, after " + in_seconds(seconds));
  else
    out.note("a second of silence: it speaks, after " + in_seconds(seconds), "MiniCPM-o listens here");
  model.handle(close_session{ear});
  work(model);
}

void judge_sound(const std::vector<float>& sound, double seconds, findings& out) {
  if (sound.empty()) {
    out.note("its answer had no sound", "random weights may end an answer at once; a trained model should not");
    return;
  }
  double energy = 0;
  std::size_t clipped = 0;
  for (auto x : sound) {
    if (!std::isfinite(x)) {
      out.fault("its sound holds values that are not numbers", "");
      return;
    }
    energy += static_cast<double>(x) * x;
    clipped += std::abs(x) >= 0.99F;
  }
  const auto loudness = std::sqrt(energy / static_cast<double>(sound.size()));
  const auto length = in_seconds(static_cast<double>(sound.size()) / 24000);
  if (loudness < 1e-4)
    out.warn("its sound is silent", "");
  else if (clipped * 20 > sound.size())
    out.warn("its sound is clipped", "");
  else
    out.pass("some words aloud: " + length + " of sound, made in " + in_seconds(seconds));
}

void speak_once(engine& model, answers& heard, findings& out) {
  model.handle(open_chat{mouth, 1});
  submit_turn turn{};
  turn.session = mouth;
  turn.messages = {{role::user, {text_item{"Say: one two three four five six seven eight nine ten."}}}};
  turn.max_new_tokens = 24;
  turn.do_sample = false;
  turn.use_tts_template = turn.tts = true;
  model.handle(std::move(turn));
  const auto seconds = work(model);
  std::vector<float> sound;
  std::string text;
  for (const auto* delta : heard.all<chat_delta>())
    if (delta->audio) sound.insert(sound.end(), delta->audio->begin(), delta->audio->end());
  for (const auto* done : heard.all<chat_done>()) {
    text = done->text;
    if (done->audio) sound.insert(sound.end(), done->audio->begin(), done->audio->end());
  }
  out.note("asked to say one to ten, it answers: " + text);
  judge_sound(sound, seconds, out);
}

} // namespace

void run_trial(const config::settings& settings, findings& out) try {
  answers heard;
  const auto begin = std::chrono::steady_clock::now();
  const auto model = make_engine(settings, [&](event&& e) { heard.events.push_back(std::move(e)); });
  out.pass("it is loaded, in " +
           in_seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()));
  if (model->info().hears) listen_once(*model, heard, out);
  if (model->info().speaks) speak_once(*model, heard, out);
  judge_failures(heard, out);
} catch (const std::exception& e) {
  out.fault(e.what(), "");
}

} // namespace parley::inference::check
