#include "inference/engine/tasks/replay_task.hpp"

#include "base/assert.hpp"

#include <ATen/ATen.h>

#include <utility>

namespace parley::inference {

void replay_task::begin() {
  duplex_task::begin();
  force_listen_ = force_listen_ || choices().forced;
}

void replay_task::cut() {
  if (choices().finished) return;
  if (speech_needs() == stage::idle && needs() != stage::decode)
    cut_awaits_ = true;
  else
    duplex_task::cut();
}

/// Feeds all tokens of the unit after its input, in one call.
bool replay_task::append_known(std::vector<at::Tensor>& rows) {
  known_ = duplex::walk(session_.decoder, choices());
  if (known_.fed.empty()) return true;
  auto place = std::int64_t{0};
  for (const auto& r : rows) place += r.size(0);
  rows.push_back(session_.with.model.llm().embed(known_.fed));
  if (session_.speech && !unit_.mute)
    for (auto row : known_.reply) feed_.kept.push_back(place + row);
  return true;
}

/// The unit's words are in the cache, and what follows them, except for the sound.
void replay_task::input_prefilled() {
  prefilled_ = engine_clock::now();
  need(stage::idle);
  reply_ = std::exchange(feed_.kept_hidden, {});
  drawn_ = choices().sampled;
  cut_ = choices().cut;
  session_.history.insert(session_.history.end(), choices().remembered.begin(), choices().remembered.end());
  session_.chance.go_on_from(choices().after.text);
  const auto was_cut = cut_ == cut_point::speaking && session_.with.options.how.interruption_keeps_speech_model;
  if (was_cut && session_.speech && !unit_.mute)
    speak_half();
  else
    words_chosen();
}

/// The unit was cut while being spoken: forces its speech tokens up to the cut again, and sends nothing.
void replay_task::speak_half() {
  auto& speech = *session_.speech;
  before_->speech = speech.remember();
  speech.begin_unit(session_.with.speaker->unit(session_.decoder.outcome().ids, reply_), known_.ends_turn);
  speech.force(choices().spoken);
  if (choices().spoken.empty())
    words_chosen();
  else
    need_speech(stage::speak);
}

/// Begins to speak the words again. If only the text was sent before, the sound is sent now.
void replay_task::begin_speech() {
  duplex_task::begin_speech();
  session_.speech->force(choices().spoken);
  if (choices().finished) return;
  told_ = answer_.used.input_text + answer_.used.output_text;
  answer_.text.clear();
  if (cut_awaits_) cut_speech();
}

void replay_task::on_speech_token() {
  if (choices().finished && choices().cut == cut_point::speaking)
    words_chosen();
  else
    duplex_task::on_speech_token();
}

void replay_task::complete() {
  if (!choices().finished) return duplex_task::complete();
  conclude_unit();
  session_.owed_text = choices().owed_text;
  session_.go_on_from(choices().after);
  session_.with.tell(replayed{session_.id, unit_.unit});
  end_unit();
}

} // namespace parley::inference
