#include "inference/engine/isolate.hpp"
#include "inference/engine/omni_engine.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

// What duplex units and chat answers share on their way to sound: a voice, speech tokens, windows.
namespace parley::inference {

namespace {

double milliseconds_since(engine_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(engine_clock::now() - begin).count();
}

} // namespace

std::optional<std::string> voice_objection(const pcm& recording) {
  return recording && !recording->empty() ? speech::voice_problem(*recording) : std::nullopt;
}

/// Gives the session its voice, now or when it has been prepared; none, if there is no recording and no default voice.
void omni_engine::ask_voice(session& s, const pcm& recording) {
  const bool own = recording && !recording->empty();
  auto voice = own ? voices_->ask(s.id, recording) : options_.default_voice;
  if (s.chat) s.chat->speaks = own || voice;
  s.voice_awaited = own && !voice;
  if (voice) give_voice(s, std::move(voice));
}

void omni_engine::give_voice(session& s, std::shared_ptr<const speech::voice> voice) {
  speech::tts_sampling sampling;
  if (options_.speech_margins) sampling.margins = &(*options_.speech_margins)[s.id];
  if (options_.trace_draws && s.duplex) sampling.margins = &trace_.speech(s.id);
  auto stream = [](std::uint64_t seed, substream use) { return std::make_unique<random_stream>(seed, use); };
  if (s.duplex) {
    auto& d = *s.duplex;
    sampling.temperature = static_cast<float>(d.speech_temperature);
    d.speech_chance = stream(s.seed, substream::speech_tokens);
    d.noise_chance = stream(s.seed, substream::noise);
    d.speech.emplace(talker_->models(), std::move(voice), sampling, d.speech_chance, d.noise_chance, options_.how);
    return;
  }
  const auto& turn = *s.chat->turn;
  const auto seed = turn.seed ? *turn.seed : s.spoken_seeds.bits();
  s.chat->speech.emplace(talker_->models(), std::move(voice),
                         turn.streaming ? speech::tts_form::streamed : speech::tts_form::whole, sampling,
                         stream(seed, substream::speech_tokens), stream(seed, substream::noise));
  if (turn.replay) s.chat->speech->force(turn.replay->spoken);
}

void omni_engine::hand_out_voices() {
  if (!voices_) return;
  for (auto& [who, voice, problem] : voices_->take()) {
    auto* asker = find(who);
    if (!asker) continue;
    auto& s = *asker;
    s.voice_awaited = false;
    guarded(s, [&] {
      if (!voice) throw std::runtime_error("the reference voice: " + problem);
      give_voice(s, std::move(voice));
      if (s.chat)
        continue_answer(s);
      else if (s.at == stage::voice)
        begin_talk(s);
    });
  }
}

/// One speech token of each session.
void omni_engine::choose_speech(const std::vector<session_id>& ids) {
  struct part {
    session* owner;
    at::Tensor logits; ///< [1, codes]; undefined when it needs none
  };
  std::vector<part> parts;
  for (auto* s : still_at(stage::speak, ids)) parts.push_back({s, {}});
  auto step_of = [](session& s) { return s.duplex ? s.duplex->speech->step() : s.chat->speech->step(); };
  auto call = [&](std::span<part> batch) {
    std::vector<speech::tts_step> steps;
    for (const auto& p : batch) steps.push_back(step_of(*p.owner));
    const auto begin = engine_clock::now();
    auto logits = speech::tts_logits(*talker_->models().tokens, steps);
    for (auto i = std::size_t{0}; i < batch.size(); ++i) batch[i].logits = std::move(logits[i]);
    for (const auto& p : batch) p.owner->tts_ms += milliseconds_since(begin);
  };
  auto done = run_isolated(std::move(parts), call,
                           [this](const part& p, const char* what) { fail(*p.owner, failure::inference, what); });
  for (auto& p : done)
    guarded(*p.owner, [&] {
      auto& s = *p.owner;
      const auto begin = engine_clock::now();
      speech::tts_take(step_of(s), p.logits);
      s.tts_ms += milliseconds_since(begin);
      if (s.duplex) {
        unit_chosen(s);
      } else {
        s.chat->speech->absorb();
        continue_answer(s);
      }
    });
}

/// One window of each session.
void omni_engine::make_sound(const std::vector<session_id>& ids) {
  struct part {
    session* owner;
    speech::token2wav::job window;
    at::Tensor samples;
  };
  std::vector<part> parts;
  for (auto* s : still_at(stage::sound, ids))
    guarded(*s, [&] {
      auto window = s->duplex ? s->duplex->speech->next_window() : s->chat->speech->next_window();
      parts.push_back({s, window.value(), {}});
    });
  auto call = [this](std::span<part> batch) {
    std::vector<speech::token2wav::job> jobs;
    for (const auto& p : batch) jobs.push_back(p.window);
    const auto begin = engine_clock::now();
    const auto sounds = talker_->sound().run(jobs);
    for (auto i = std::size_t{0}; i < batch.size(); ++i) {
      batch[i].samples = sounds[i];
      batch[i].owner->token2wav_ms += milliseconds_since(begin);
    }
  };
  auto done = run_isolated(std::move(parts), call,
                           [this](const part& p, const char* what) { fail(*p.owner, failure::inference, what); });
  for (auto& p : done)
    guarded(*p.owner, [&] {
      if (p.owner->duplex)
        window_made(*p.owner, std::move(p.samples));
      else
        tell_sound(*p.owner, p.samples);
    });
}

// ---- a duplex unit ----------------------------------------------------------------------------------------------------

/// All words of the unit are known.
void omni_engine::begin_unit_speech(session& s) {
  auto& d = *s.duplex;
  const auto& outcome = d.decoder.outcome();
  auto condition = talker_->unit(outcome.ids, d.reply);
  d.before->speech = d.speech->remember();
  d.speech->begin_unit(std::move(condition), outcome.end_of_turn);
  s.speech_at = stage::speak;
  if (d.unit->replay)
    replay_speech(s);
  else
    tell_text(s);
}

/// The text leads, as soon as the step's usage and whether there will be sound are certain: at once in the middle of a turn.
void omni_engine::tell_text(session& s) {
  auto& d = *s.duplex;
  const auto tokens = d.speech->unit_tokens();
  if (d.told || !tokens) return;
  d.answer.used.output_audio = static_cast<std::int64_t>(*tokens);
  if (d.answer.text.empty() || !d.speech->will_sound()) return;
  auto text = d.answer;
  text.last = text.end_of_turn = false;
  text.choices = choices_of(s);
  d.told = text.used.input_text + text.used.output_text;
  d.answer.text.clear();
  out_(std::move(text));
}

/// A speech token of the unit was chosen.
void omni_engine::unit_chosen(session& s) {
  auto& speech = *s.duplex->speech;
  const auto& known = s.duplex->unit->replay;
  if (known && known->finished && known->cut == cut_point::speaking) return finish_unit(s);
  if (speech.choosing()) return;
  if (!known) tell_text(s);
  if (speech.next_window())
    s.speech_at = stage::sound;
  else
    unit_spoken(s);
}

void omni_engine::window_made(session& s, at::Tensor samples) {
  auto& speech = *s.duplex->speech;
  speech.take_sound(std::move(samples));
  if (!speech.next_window()) unit_spoken(s);
}

void omni_engine::unit_spoken(session& s) {
  auto& d = *s.duplex;
  auto& out = d.answer;
  out.metrics.n_tts_tokens = static_cast<int>(*d.speech->unit_tokens());
  out.used.output_audio = out.metrics.n_tts_tokens;
  const auto spoken = d.speech->tokens().group_chosen();
  d.spoken.assign(spoken.begin(), spoken.end());
  out.metrics.tts_ms = s.tts_ms;
  out.metrics.token2wav_ms = s.token2wav_ms;
  out.metrics.generate_ms = milliseconds_since(s.prefilled);
  auto sound = d.speech->end_unit();
  if (!sound.empty() || d.told) {
    out.kind = output_kind::audio;
    out.audio = std::make_shared<const std::vector<float>>(std::move(sound));
  }
  complete_unit(s);
}

/// Stops a unit that is being spoken: what has not left is dropped, the turn is closed inside the model.
void omni_engine::cut_speech(session& s) {
  s.speech_at = stage::idle;
  s.at = stage::decode;
  s.duplex->cut = cut_point::speaking;
  s.duplex->decoder.recall();
  settle(s);
}

// ---- a chat answer ----------------------------------------------------------------------------------------------------

/// Words become groups as in the reference: a group is complete when the word behind it is known, or the answer is over.
void omni_engine::group_words(session& s, bool over) {
  auto& c = *s.chat;
  const auto& ids = c.answer->tokens();
  auto add = [&](std::size_t count, bool last) {
    const auto words = std::span(ids).subspan(c.grouped, count);
    c.groups.push_back({talker_->words(words, std::span(c.hidden).subspan(c.grouped, count)), last});
    c.grouped += count;
  };
  constexpr auto group = static_cast<std::size_t>(chat::answer_decoder::chunk_tokens);
  if (c.turn->streaming)
    while (ids.size() > c.grouped + group) add(group, false);
  if (over) {
    // The last token of an answer that reached its limit was never fed: there is nothing to speak it from.
    if (c.hidden.size() > c.grouped) add(c.hidden.size() - c.grouped, c.answer->complete() || !c.turn->streaming);
    c.worded = true;
    c.worded_at = engine_clock::now();
  }
  continue_answer(s);
}

/// What the speaking half does next: sound before tokens, so that it is heard early.
void omni_engine::continue_answer(session& s) {
  auto& c = *s.chat;
  s.speech_at = stage::idle;
  if (!c.speech) return; // the voice is being prepared
  if (!c.speech->window_waits() && !c.speech->choosing()) {
    if (!c.groups.empty()) {
      c.speech->begin_group(c.groups.front().condition, c.groups.front().last);
      c.groups.pop_front();
    } else if (c.worded && !std::exchange(c.flushed, true)) {
      c.speech->finish();
    }
  }
  if (c.speech->window_waits())
    s.speech_at = stage::sound;
  else if (c.speech->choosing())
    s.speech_at = stage::speak;
  else if (c.flushed)
    finish_turn(s, c.reason);
}

void omni_engine::tell_sound(session& s, const at::Tensor& samples) {
  auto& c = *s.chat;
  const auto limited = samples.clamp(-1, 1);
  const std::span sound(limited.const_data_ptr<float>(), static_cast<std::size_t>(limited.numel()));
  const auto fresh = sound.subspan(std::min(sound.size(), c.told.samples));
  c.told.samples -= sound.size() - fresh.size();
  if (!c.turn->streaming)
    c.sound.insert(c.sound.end(), sound.begin(), sound.end());
  else if (!fresh.empty())
    tell_delta(s, {}, std::make_shared<const std::vector<float>>(fresh.begin(), fresh.end()));
  continue_answer(s);
}

void omni_engine::tell_words(session& s, std::string text) {
  auto& told = s.chat->told.bytes;
  const auto again = std::min(told, text.size());
  told -= again;
  if (again < text.size()) tell_delta(s, text.substr(again), nullptr);
}

/// What was chosen since the last delta goes with it.
void omni_engine::tell_delta(session& s, std::string text, pcm audio) {
  auto& c = *s.chat;
  const auto since = [](std::span<const token_id> all, std::size_t& told) {
    std::vector<token_id> fresh;
    if (told < all.size()) fresh.assign(all.begin() + static_cast<std::ptrdiff_t>(told), all.end());
    told = std::max(told, all.size());
    return fresh;
  };
  chat_delta delta{s.id, c.turn->turn, std::move(text), std::move(audio), since(c.drawn, c.told.chosen)};
  if (c.speech) delta.spoken = since(c.speech->tokens().chosen(), c.told.spoken);
  out_(std::move(delta));
}

} // namespace parley::inference
