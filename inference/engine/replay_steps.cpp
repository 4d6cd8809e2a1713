#include "inference/engine/omni_engine.hpp"

#include <ATen/ATen.h>

#include <utility>

// A session that goes on from another engine's: what was chosen there is chosen here, whatever chance and rounding say.
namespace parley::inference {

chances session::chance_now() const {
  if (!duplex) return {chance.where(), spoken_seeds.where(), {}};
  chances now{chance.where(), {}, {}};
  if (duplex->speech_chance) now.speech = duplex->speech_chance->where();
  if (duplex->noise_chance) now.noise = duplex->noise_chance->where();
  return now;
}

void session::go_on_from(const chances& where) {
  chance.go_on_from(where.text);
  if (!duplex) {
    spoken_seeds.go_on_from(where.speech);
    return;
  }
  if (duplex->speech_chance) duplex->speech_chance->go_on_from(where.speech);
  if (duplex->noise_chance) duplex->noise_chance->go_on_from(where.noise);
}

/// What the running unit has come to so far.
std::shared_ptr<unit_choices> omni_engine::choices_of(const session& s) const {
  const auto& d = *s.duplex;
  auto made = std::make_shared<unit_choices>();
  made->forced = d.force_listen;
  made->cut = d.cut;
  made->drawn = d.drawn;
  made->remembered.assign(d.history.begin() + static_cast<std::ptrdiff_t>(d.before->history), d.history.end());
  made->spoken = d.spoken;
  if (d.before->speech && d.spoken.empty()) {
    const auto spoken = d.speech->tokens().group_chosen();
    made->spoken.assign(spoken.begin(), spoken.end());
  }
  made->after = s.chance_now();
  return made;
}

/// All tokens of the unit follow its input in one go.
void omni_engine::replay_words(session& s, std::vector<at::Tensor>& rows) {
  auto& d = *s.duplex;
  d.known = duplex::walk(d.decoder, *d.unit->replay);
  s.kept_rows.clear();
  if (d.known.fed.empty()) return;
  auto place = std::int64_t{0};
  for (const auto& r : rows) place += r.size(0);
  rows.push_back(model_->llm().embed(d.known.fed));
  if (d.speech && !d.unit->mute)
    for (auto row : d.known.reply) s.kept_rows.push_back(place + row);
}

/// The unit's words are in the cache, and all that follows them but the sound.
void omni_engine::words_replayed(session& s) {
  auto& d = *s.duplex;
  const auto& known = *d.unit->replay;
  s.kept_rows.clear();
  d.drawn = known.drawn;
  d.cut = known.cut;
  d.history.insert(d.history.end(), known.remembered.begin(), known.remembered.end());
  s.chance.go_on_from(known.after.text);
  s.at = stage::idle;
  const auto half_spoken = known.cut == cut_point::speaking && options_.how.interruption_keeps_speech_model;
  if (!half_spoken || !d.speech || d.unit->mute) {
    finish_unit(s);
    return;
  }
  d.before->speech = d.speech->remember();
  d.speech->begin_unit(talker_->unit(d.decoder.outcome().ids, d.reply), d.known.ends_turn);
  d.speech->force(known.spoken);
  if (known.spoken.empty())
    finish_unit(s);
  else
    s.speech_at = stage::speak;
}

/// The unit's words are about to be spoken again. If only its text has left, what follows is told.
void omni_engine::replay_speech(session& s) {
  auto& d = *s.duplex;
  d.speech->force(d.unit->replay->spoken);
  if (d.unit->replay->finished) return;
  d.told = d.answer.used.input_text + d.answer.used.output_text;
  d.answer.text.clear();
  if (d.cut_awaits) cut_speech(s);
}

} // namespace parley::inference
