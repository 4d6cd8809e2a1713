#include "inference/engine/omni_engine.hpp"
#include "inference/log.hpp"

#include <ATen/ATen.h>

namespace parley::inference {

namespace {

double milliseconds(engine_clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

constexpr int unit_samples = 16000;

} // namespace

std::optional<std::pair<failure, std::string>> omni_engine::objection(const session& s, const submit_unit& unit,
                                                                      int pieces) const {
  if (!unit.frames.empty() && !model_->sees())
    return std::pair{failure::invalid, std::string("video_frames: this model does not see")};
  if (!unit.samples || unit.samples->size() != unit_samples)
    return std::pair{failure::invalid, std::string("a unit has 16000 samples")};
  const auto& d = *s.duplex;
  auto sound =
      audio::audio_tokens(d.stream.config.chunk_samples() / audio::mel_hop_samples, model_->config().audio.pool_step);
  // <unit>, the pieces between their marks, the sound, what the model says or a forced <|turn_eos|>; a window feeds the unit's end at once.
  auto end = d.window.options().mode == window_mode::off ? 0 : 2;
  auto most = std::ssize(d.tail) + 1 + pieces * (model_->config().vision.query_num + 2) + sound +
              std::max(d.decoder.max_new_tokens(), 1) + end;
  if (s.cache.length() + most > options_.info.context_tokens)
    return std::pair{failure::context_full, std::string("the context is full")};
  return std::nullopt;
}

void omni_engine::start_unit(session& s) {
  auto& d = *s.duplex;
  auto [unit, pictures] = std::move(s.units.front());
  s.units.pop_front();
  d.unit = std::move(unit);
  take_pictures(s, std::move(pictures));
  if (auto why = objection(s, *d.unit, static_cast<int>(d.unit->frames.size()))) {
    fail(s, why->first, why->second);
    return;
  }
  d.before.emplace(duplex_state::snapshot{
      s.cache.length(), d.encoder.length, d.stream, d.intake, d.decoder, d.history.size(), d.tail, s.chance_now(), {}});
  s.began = engine_clock::now();
  if (options_.trace_draws) trace_.begin(s.id);
  d.force_listen = d.unit->force_listen || (d.unit->replay && d.unit->replay->forced);
  d.drawn.clear();
  d.spoken.clear();
  d.cut = cut_point::none;
  d.cut_awaits = false;
  d.reply.clear();
  s.tts_ms = s.token2wav_ms = 0;
  s.at = stage::hear;
}

void omni_engine::unit_heard(session& s, at::Tensor sound) {
  s.duplex->sound_rows = sound.size(0);
  s.duplex->sound = std::move(sound);
  if (s.pictures)
    s.at = stage::look;
  else
    gather_unit(s, {});
}

/// The end of the last unit, `<unit>`, the frames if there are any, the sound.
void omni_engine::gather_unit(session& s, const at::Tensor& frames) {
  auto& d = *s.duplex;
  d.window.begin_unit(s.cache.length() + std::ssize(d.tail));
  d.tail.push_back(control_.unit_begin);
  std::vector<at::Tensor> rows{model_->llm().embed(std::exchange(d.tail, {}))};
  if (frames.defined()) rows.push_back(frames);
  rows.push_back(std::exchange(d.sound, {}));
  if (d.unit->replay) replay_words(s, rows);
  begin_prefill(s, purpose::unit, at::cat(rows));
}

/// The newest logits are there and the decoder wants a token.
void omni_engine::decide(session& s) {
  auto& d = *s.duplex;
  std::span<float> row(s.logits.mutable_data_ptr<float>(), static_cast<std::size_t>(s.logits.numel()));
  s.token = llm::draw_duplex(row, duplex_ids_, d.sampling, options_.how, d.history, s.chance, s.scratch);
}

/// All tokens of the unit are chosen.
void omni_engine::finish_unit(session& s) {
  auto& d = *s.duplex;
  const auto& outcome = d.decoder.outcome();
  auto now = engine_clock::now();
  auto& out = d.answer = {};
  out.session = s.id;
  out.unit = d.unit->unit;
  out.kind = outcome.is_listen ? output_kind::listen : output_kind::text;
  out.text = outcome.text;
  out.end_of_turn = outcome.end_of_turn;
  out.used.input_text =
      2 + std::ssize(outcome.appended) - outcome.drawn + d.owed_text; // <unit>, </unit>, forced tokens
  out.used.input_text += 2 * s.pieces;                                // their marks
  out.used.input_audio = d.sound_rows;
  out.used.input_vision = std::int64_t{s.pieces} * model_->config().vision.query_num;
  out.metrics.vision_slices = s.pieces;
  out.metrics.vision_tokens = static_cast<int>(out.used.input_vision);
  out.used.output_text = outcome.drawn;
  out.metrics.kv_cache_length = static_cast<int>(s.cache.length());
  out.metrics.prefill_ms = milliseconds(s.prefilled - s.began);
  out.metrics.generate_ms = out.metrics.llm_ms = milliseconds(now - s.prefilled);
  out.metrics.n_tokens = static_cast<int>(outcome.ids.size());
  out.metrics.window_events = d.window.events();
  s.at = stage::idle;
  if (d.speech && !outcome.is_listen && !d.unit->mute)
    begin_unit_speech(s);
  else
    complete_unit(s);
}

/// The unit's last delta leaves, and nothing of it is taken back any more.
void omni_engine::complete_unit(session& s) {
  auto& d = *s.duplex;
  const auto& outcome = d.decoder.outcome();
  const auto known = d.unit->replay && d.unit->replay->finished ? d.unit->replay : nullptr;
  const auto chosen = known ? nullptr : choices_of(s);
  if (chosen && options_.trace_draws) log_trace(trace_.line(s.id, s.seed, d.unit->unit, chosen->spoken));
  if (!known) meter_.unit(engine_clock::now() - s.began > std::chrono::seconds(1));
  if (d.speech && outcome.is_listen && (d.force_listen || outcome.cut)) d.speech->cut();
  const auto& used = d.answer.used;
  d.answer.first = !d.told;
  d.owed_text = d.told ? used.input_text + used.output_text - *d.told : 0;
  d.told.reset();
  d.unit.reset();
  d.before.reset();
  d.reply.clear();
  s.speech_at = stage::idle;
  if (outcome.terminator) d.tail.push_back(*outcome.terminator);
  d.tail.push_back(control_.unit_end);
  if (known) {
    d.owed_text = known->owed_text;
    s.go_on_from(known->after);
    out_(replayed{s.id, d.answer.unit});
  } else {
    chosen->finished = true;
    chosen->owed_text = d.owed_text;
    chosen->voice_open = d.speech && d.speech->turn_is_open();
    d.answer.choices = chosen;
    out_(std::move(d.answer));
  }
  // Without a window the end of the unit is fed together with the next one.
  if (d.window.options().mode != window_mode::off)
    begin_prefill(s, purpose::close_unit, model_->llm().embed(std::exchange(d.tail, {})));
  else
    next_job(s);
}

void omni_engine::close_unit(session& s) {
  auto& d = *s.duplex;
  d.window.end_unit(s.cache.length(), d.decoder.outcome());
  d.slides = d.window.slide(s.cache.length());
  slide(s);
}

void omni_engine::slide(session& s) {
  auto& d = *s.duplex;
  if (d.slides.empty()) {
    s.at = stage::idle;
    next_job(s);
    return;
  }
  auto step = std::move(d.slides.front());
  d.slides.erase(d.slides.begin());
  d.moved = s.cache.copy_from(step.keep + step.drop);
  s.cache.rewind(step.keep, std::ssize(step.insert) + d.moved.rows());
  if (step.insert.empty())
    slide_fed(s);
  else
    begin_prefill(s, purpose::slide, model_->llm().embed(step.insert));
}

void omni_engine::slide_fed(session& s) {
  s.cache.append(s.duplex->moved, model_->llm().positions());
  s.duplex->moved = {};
  slide(s);
}

} // namespace parley::inference
