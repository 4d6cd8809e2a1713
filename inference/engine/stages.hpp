#pragma once

#include "inference/engine/scheduler.hpp"
#include "inference/engine/session_table.hpp"
#include "inference/talker.hpp"
#include "inference/thinker.hpp"

#include <span>

namespace parley::inference {

/// The stages of the model. Each is one batched call for all tasks that the plan names and that still need it: their
/// input is gathered, the model is called once, and each task receives its part. When a call throws, the tasks are tried one
/// by one, so that only the culprit fails.
class stages {
public:
  /// All of them outlive this. `speaker` is null when no task ever speaks.
  stages(session_table& sessions, const thinker& model, const talker* speaker)
      : sessions_(sessions), model_(model), speaker_(speaker) {}

  /// Streams: a second of each.
  void hear(std::span<const session_id> ids);

  /// Pieces of pictures; `rows` of the plan are pieces.
  void see(std::span<const schedule::piece> plan);

  /// Whole sounds of one prompt: one step of hearing them.
  void hear_clips(session_id id);

  /// Rows of prefills and single tokens in one call, so that the weights are read once; then a token is sampled for each
  /// task that wants one.
  void run_llm(std::span<const schedule::piece> prefill, std::span<const session_id> decode);

  /// One speech token of each.
  void choose_speech(std::span<const session_id> ids);

  /// One window of speech tokens of each becomes sound.
  void make_sound(std::span<const session_id> ids);

private:
  struct llm_part;
  std::vector<llm_part> llm_parts(std::span<const schedule::piece> prefill, std::span<const session_id> decode);
  void forward(std::span<llm_part> batch);
  struct drawing;
  void draw(std::span<drawing> rows);

  session_table& sessions_;
  const thinker& model_;
  const talker* speaker_;
};

} // namespace parley::inference
