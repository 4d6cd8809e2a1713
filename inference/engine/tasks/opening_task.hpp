#pragma once

#include "inference/engine/tasks/clip_input.hpp"
#include "inference/engine/tasks/duplex_session.hpp"
#include "inference/engine/tasks/text_jobs.hpp"
#include "inference/engine/tasks/voice_request.hpp"

#include <memory>
#include <optional>

namespace parley::inference {

/// From `open_duplex` to `opened`: gives the session its prompt and its voice. The first session that needs a prompt
/// makes it, and later ones share it. If this fails, the session ends.
class opening_task final : public task {
public:
  opening_task(duplex_session& of, open_duplex&& order);

  void begin() override;

  engine_clock::time_point deadline() const override { return task::deadline() + voice_.patience(); }
  work_kind kind() const override { return work_kind::prompt; }
  bool divisible() const override { return true; }

  void resume() override;
  void on_voice(std::shared_ptr<const speech::voice> voice) override;
  thinker::clip_hearing& clips() override {
    return voice_.hearing(session_.with.model, session_.with.options.how, *prompt_.voice.samples);
  }
  void on_clips_heard(at::Tensor rows) override;
  void on_prefilled() override;

private:
  void take_text();
  void share_or_make();
  bool fits(std::int64_t voice_rows);
  void build(at::Tensor voice);
  void know_parts(std::int64_t voice_rows);
  void prompt_there();
  void tell_opened();

  duplex_session& session_;
  open_duplex order_;
  spoken_prompt prompt_;                       ///< until the session has it
  std::shared_ptr<text_job> reading_;          ///< while its text is being read
  std::optional<prefix_cache::making> making_; ///< the right to make this prompt
  clip_input voice_;                           ///< encodes the prompt's voice into rows
  usage used_;
  voice_request speaker_; ///< the voice in which the session will speak
};

} // namespace parley::inference
