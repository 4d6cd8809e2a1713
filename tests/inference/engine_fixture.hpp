#pragma once

#include "inference/engine/omni/omni_engine.hpp"
#include "inference/formats/wav_file.hpp"
#include "inference/verify/golden_set.hpp"

#include <c10/core/InferenceMode.h>
#include <catch2/catch.hpp>

#include <cstddef>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// An engine with the embedded model, and the events that it reported.
namespace parley::inference::testing {

inline const std::shared_ptr<const thinker>& model() {
  static const auto m = [] {
    c10::InferenceMode guard;
    return std::make_shared<const thinker>(checkpoint::open("models/tiny-omni"), model_config::open("models/tiny-omni"),
                                           at::kFloat, at::kCPU);
  }();
  return m;
}

/// The same model's talker, with its own default voice.
inline const std::shared_ptr<const talker>& voice_box() {
  static const auto made = [] {
    c10::InferenceMode guard;
    return std::make_shared<const talker>(checkpoint::open("models/tiny-omni"), model()->config(), quirks{}, at::kFloat,
                                          at::kCPU);
  }();
  return made;
}

inline const std::shared_ptr<const speech::voice>& default_voice() {
  static const auto made = [] {
    c10::InferenceMode guard;
    const auto wav = speech::read_wav_file("models/tiny-omni/assets/default_voice.wav");
    return voice_box()->sound().prepare(voice_box()->sound().ear().hear(wav.samples, wav.rate));
  }();
  return made;
}

/// Spoken words at 16 kHz.
inline const std::vector<float>& spoken_words() {
  static const auto sound = [] {
    verify::golden_set files("tests/data/checkpoints/tiny", "tests/data/goldens/thinker");
    return files.clip("long", 0, 0);
  }();
  return sound;
}

inline pcm second(int number) {
  auto begin = spoken_words().begin() + static_cast<std::ptrdiff_t>(number % 30) * 16000;
  return std::make_shared<const std::vector<float>>(begin, begin + 16000);
}

/// Whether an engine has a talker.
enum class able { to_write, to_speak };

inline omni_engine::options options_for(int slots, int context, const quirks& how, std::optional<std::uint64_t> seed,
                                        able to, std::shared_ptr<draw_observer> draws = nullptr) {
  omni_engine::options o;
  o.draws = std::move(draws);
  o.info.slots = slots;
  o.info.context_tokens = context;
  o.info.hears = true;
  o.how = how;
  o.seed = seed;
  o.info.speaks = to == able::to_speak;
  if (o.info.speaks) o.default_voice = default_voice();
  return o;
}

/// Keeps all draws of an engine.
struct all_draws final : draw_observer {
  std::map<session_id, std::vector<llm::draw_record>> texts;
  std::map<session_id, std::vector<double>> speech_margins; ///< the margin of each draw of speech

  std::vector<llm::draw_record>& text(session_id id) override { return texts[id]; }
  std::vector<double>& speech(session_id id) override { return speech_margins[id]; }
};

struct engine_fixture {
  /// `full_contexts`: sessions whose whole context the KV pool holds at once, if not all.
  explicit engine_fixture(int slots, int context = 2048, quirks how = {}, std::optional<std::uint64_t> seed = 1,
                          able to = able::to_write, std::optional<int> full_contexts = {})
      : full_contexts(full_contexts.value_or(slots)),
        engine(model(), to == able::to_speak ? voice_box() : nullptr,
               llm::kv_pool(model()->config().llm, this->full_contexts, context, at::kFloat, at::kCPU),
               options_for(slots, context, how, seed, to, draws),
               [this](event&& e) { events.push_back(std::move(e)); }) {}

  void run() {
    for (auto passes = 0; engine.advance(); ++passes) REQUIRE(passes < 100000);
  }

  void open(session_id id, duplex_options o = {}, std::optional<std::uint64_t> seed = {}, pcm voice = nullptr) {
    engine.handle(open_duplex{id, "You are a helpful assistant.", o, voice, nullptr, seed});
  }

  void unit(session_id id, std::uint64_t number, pcm samples, bool force = false) {
    engine.handle(submit_unit{{std::move(samples), {}, 1, force}, id, number});
  }

  /// Everything that was reported to a session, as text for comparison.
  std::vector<std::string> told(session_id id) const {
    std::vector<std::string> lines;
    for (const auto& e : events) {
      if (const auto* o = std::get_if<step_output>(&e); o && o->session == id)
        lines.push_back(std::to_string(o->unit) + (o->kind == output_kind::listen ? " listen" : " say ") + o->text +
                        (o->end_of_turn ? " end" : "") + " kv " + std::to_string(o->metrics.kv_cache_length) + " out " +
                        std::to_string(o->used.output_text));
      if (const auto* f = std::get_if<failed>(&e); f && f->session == id)
        lines.push_back(std::to_string(f->number) + " failed " + std::to_string(static_cast<int>(f->kind)));
      if (const auto* d = std::get_if<chat_done>(&e); d && d->session == id)
        lines.push_back(std::to_string(d->turn) + " done " + std::to_string(static_cast<int>(d->reason)) + d->text);
    }
    return lines;
  }

  template<class T>
  std::vector<T> all() const {
    std::vector<T> found;
    for (const auto& e : events)
      if (const auto* x = std::get_if<T>(&e)) found.push_back(*x);
    return found;
  }

  void check_empty(std::initializer_list<session_id> open_ones) {
    for (auto id : open_ones) engine.handle(close_session{id});
    run();
    CHECK(engine.free_pages() == total_pages());
  }

  int total_pages() const {
    return full_contexts * ((engine.info().context_tokens + llm::kv_pool::page_tokens - 1) / llm::kv_pool::page_tokens);
  }

  int full_contexts;
  std::shared_ptr<all_draws> draws = std::make_shared<all_draws>();
  std::vector<event> events;
  omni_engine engine;
};

inline duplex_options lively(int number) {
  duplex_options o;
  o.force_listen_count = number % 3;
  o.sampling.greedy = number % 2 == 0;
  o.max_new_speak_tokens_per_chunk = 8 + number;
  o.window = number == 3 ? window_mode::basic : number == 4 ? window_mode::context : window_mode::off;
  o.window_high_tokens = 150;
  o.window_low_tokens = 100;
  return o;
}

inline submit_turn ask(session_id id, std::uint64_t turn, std::string text, int max_new_tokens = 30) {
  submit_turn t;
  t.session = id;
  t.turn = turn;
  t.messages = {{role::user, {text_item{std::move(text)}}}};
  t.max_new_tokens = max_new_tokens;
  return t;
}

} // namespace parley::inference::testing
