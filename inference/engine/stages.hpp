#pragma once

#include "inference/engine/scheduler.hpp"
#include "inference/engine/session_table.hpp"
#include "inference/engine/task_context.hpp"

#include <span>

namespace parley::inference {

/// The stages of the model. Each is one batched call for all tasks that are named by the plan and still need it: it
/// gathers their inputs, calls the model once, and gives each task its part. If the call throws, the tasks are tried
/// one by one, so that only the culprit fails.
class stages {
public:
  /// All arguments must outlive this.
  stages(session_table& sessions, const task_context& with) : sessions_(sessions), with_(with) {}

  /// Encodes a second of each stream.
  void hear(std::span<const session_id> ids);

  /// Encodes pieces of pictures; `rows` of the plan counts pieces.
  void see(std::span<const schedule::piece> plan);

  /// Encodes whole sounds of one prompt, one step at a time.
  void hear_clips(session_id id);

  /// Moves rows of caches; `rows` of the plan counts layers.
  void slide(std::span<const schedule::piece> plan);

  /// Feeds rows of prefills and single tokens in one call, so that the weights are read once; then samples a token for
  /// each task that wants one.
  void run_llm(std::span<const schedule::piece> prefill, std::span<const session_id> decode);

  /// Chooses up to `steps` speech tokens for each session that still needs them.
  void choose_speech(std::span<const session_id> ids, int steps);

  /// Turns one window of speech tokens of each session into sound.
  void make_sound(std::span<const session_id> ids);

private:
  struct llm_part;
  std::vector<llm_part> llm_parts(std::span<const schedule::piece> prefill, std::span<const session_id> decode);
  void forward(std::span<llm_part> batch);
  struct drawing;
  void draw(std::span<drawing> rows);
  static void download_rows(std::span<drawing> rows);
  bool choose_one(std::span<const session_id> ids);
  void choose_several(std::span<const session_id> ids, int steps);

  session_table& sessions_;
  const task_context& with_;
};

} // namespace parley::inference
