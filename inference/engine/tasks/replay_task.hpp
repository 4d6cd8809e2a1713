#pragma once

#include "inference/duplex/known_unit.hpp"
#include "inference/engine/tasks/duplex_task.hpp"

namespace parley::inference {

/// A unit of a session that another engine began: repeats the choices made there, whatever the random numbers and
/// rounding. A finished unit only reports that it was replayed. Of an unfinished one, the text was sent before;
/// everything after it is sent now.
class replay_task final : public duplex_task {
public:
  using duplex_task::duplex_task;

  void begin() override;
  void cut() override;
  work_kind kind() const override { return work_kind::replay; }
  void input_prefilled() override;
  void on_speech_token() override;

private:
  const unit_choices& choices() const { return *unit_.replay; }
  bool append_known(std::vector<at::Tensor>& rows) override;
  void begin_speech() override;
  void tell_text() override {} ///< it was sent before
  void complete() override;
  void speak_half();

  duplex::known_unit known_;
  bool cut_awaits_ = false; ///< it will be cut when its words are known
};

} // namespace parley::inference
