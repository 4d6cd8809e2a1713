#pragma once

#include "inference/duplex/known_unit.hpp"
#include "inference/engine/tasks/duplex_task.hpp"

namespace parley::inference {

/// A unit of a session that continues from another engine's: what was chosen there is chosen here, whatever the random
/// numbers and rounding say. A finished unit only reports that it was replayed. Of an unfinished one the text was sent
/// before; everything after it is sent.
class replay_task final : public duplex_task {
public:
  using duplex_task::duplex_task;

  void begin() override;
  void cut() override;
  bool is_unit() const override { return false; } ///< nobody waits for it
  void on_prefilled() override;
  void on_speech_token() override;

private:
  const unit_choices& choices() const { return *unit_.replay; }
  bool append_known(std::vector<at::Tensor>& rows) override;
  void begin_speech() override;
  void tell_text() override {} ///< sent before
  void complete() override;
  void speak_half();

  duplex::known_unit known_;
  bool cut_awaits_ = false; ///< it is cut once its words are there
};

} // namespace parley::inference
