#pragma once

#include "inference/engine/scheduler.hpp"
#include "inference/engine/work_ledger.hpp"
#include "inference/llm/sampling.hpp"
#include "inference/thinker.hpp"
#include "inference/tts/turn.hpp"
#include "inference/vision/pieces.hpp"
#include "inference/vocoder/token2wav.hpp"

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace parley::inference {

using engine_clock = std::chrono::steady_clock;

inline double milliseconds(engine_clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

struct session;

/// Why a task failed, in words for the client.
struct task_failure {
  failure_kind kind = failure_kind::inference;
  std::string message;
};

/// What a task puts into its session's KV cache, and the model's results.
struct llm_feed {
  // stage::prefill
  at::Tensor rows;                ///< [n, hidden]
  std::int64_t done = 0;          ///< how many of the rows are in the cache
  bool wants_logits = false;      ///< the logits of the last row are wanted
  std::vector<std::int64_t> kept; ///< rows whose hidden states are wanted; if any, all rows go into one call

  // stage::decode
  token_id token = 0; ///< the token to feed

  // the results
  at::Tensor hidden;                    ///< [1, hidden] of the newest row
  at::Tensor logits;                    ///< of the newest row: float32 [vocabulary]
  std::optional<llm::short_row> listed; ///< what a device sent of them
  std::vector<at::Tensor> kept_hidden;  ///< [1, hidden] for each row in `kept`

  std::int64_t left() const { return rows.defined() ? rows.size(0) - done : 0; }
};

/// An allowed change from one stage to the next.
struct transition {
  stage from, to;
};

/// Milliseconds of the batched calls in which a task took part.
struct speech_costs {
  double tts_ms = 0;
  double token2wav_ms = 0;
};

/// What a session is doing: opening, answering a unit or a turn, or sliding its window. A task owns the state of that
/// work and decides what comes next: it names the stage that it needs, the engine runs the stage as one batched call
/// for all tasks that need it and hands each its result, until the task has finished or failed. The thinker and the
/// talker each need a stage: a chat answer continues to be generated while it is spoken.
///
/// If a task throws, it has failed. Used by the engine's thread only, except for `draw`.
class task {
public:
  virtual ~task() = default;
  task(const task&) = delete;
  task& operator=(const task&) = delete;

  // ---- life cycle

  /// Called once, when it is the session's turn to run it.
  virtual void begin() = 0;

  bool finished() const { return finished_; }
  const std::optional<task_failure>& failed_with() const { return failure_; }

  /// The number of its unit or turn. If the task fails, the failure is reported for that number and the session
  /// continues. None = a failure ends the session.
  virtual std::optional<std::uint64_t> number() const { return std::nullopt; }

  /// Restores the session to its state before `begin`. Only for tasks with a `number`.
  virtual void take_back();

  /// Called when `cut` or `cancel_turn` arrives while it runs.
  virtual void cut() {}
  virtual void cancel() {}

  // ---- what the scheduler asks

  session& owner() const { return session_; }
  stage needs() const { return needs_; }               ///< of the thinker: idle to decode
  stage speech_needs() const { return speech_needs_; } ///< of the talker: idle, voice, speak or sound
  virtual engine_clock::time_point deadline() const { return began_ + std::chrono::seconds(1); }
  virtual std::int64_t rows_left() const { return feed_.left(); } ///< prefill rows, pieces to encode, layers to move
  virtual bool divisible() const { return false; }                ///< its prefill may be split over several passes
  virtual work_kind kind() const = 0;
  bool is_unit() const { return kind() == work_kind::unit || kind() == work_kind::window; } ///< waiting makes it late
  virtual int steps_left() const { return 1; } ///< of a unit: passes that it may still take

  // ---- stages prepared elsewhere: look, read, same_prompt, voice

  /// Called before each pass while it needs `look`, `read` or `same_prompt`, to check whether that is ready.
  virtual void resume();
  virtual void on_voice(std::shared_ptr<const speech::voice> voice);

  // ---- stage::hear

  /// The state of the stream before the unit, and its next second. Called again after a failed call.
  virtual thinker::fresh_sound next_sound();
  virtual void on_heard(at::Tensor rows); ///< [tokens, hidden]

  // ---- stage::see

  /// Up to `most` pieces that are not encoded yet, in order.
  virtual std::vector<const vision::patch_grid*> next_pieces(std::int64_t most);
  virtual void on_seen(at::Tensor rows); ///< [pieces, query_num, hidden]

  // ---- stage::clips

  virtual thinker::clip_hearing& clips();
  virtual void on_clips_heard(at::Tensor rows); ///< [tokens, hidden]

  // ---- stage::slide

  virtual int pages_to_slide() const; ///< pages that its next layers take from the pool
  virtual void slide(std::int64_t layers);

  // ---- stage::prefill, stage::decode

  llm_feed& feed() { return feed_; }
  virtual void on_prefilled(); ///< all rows of `feed` are in the cache
  virtual void on_token_fed(); ///< its token is in the cache, and the results are in `feed`
  /// Whether a token should be sampled from the newest logits.
  virtual bool wants_token() const { return false; }
  /// Samples the token. Runs in parallel with other tasks, on any thread. The second: none, with nothing changed, if
  /// it takes the whole row.
  virtual token_id draw(std::span<float> logits);
  virtual std::optional<token_id> draw_listed(llm::short_row logits);
  virtual void on_token_drawn(); ///< `feed().token` has been sampled

  // ---- stage::speak, stage::sound

  virtual speech::tts_step speech_step();
  virtual void on_speech_token();
  virtual speech::token2wav::job next_window();
  virtual void on_sound(at::Tensor samples); ///< float32 [n] on the CPU, 24 kHz
  speech_costs& costs() { return costs_; }

  /// The engine has spent this on the task.
  void spend(engine_clock::duration time) { spent_ += time; }

protected:
  /// `allowed`: the allowed stages of the thinker; must have static lifetime.
  task(session& owner, std::span<const transition> allowed) : session_(owner), allowed_(allowed) {}

  engine_clock::time_point arrived() const { return arrived_; }

  void need(stage next);
  void need_speech(stage next);
  void prefill(at::Tensor rows); ///< requests `prefill` for these rows
  void set_finished();
  void fail(failure_kind kind, std::string message);

  engine_clock::time_point began_, prefilled_;

private:
  session& session_;
  std::span<const transition> allowed_;
  const engine_clock::time_point arrived_ = engine_clock::now();
  stage needs_ = stage::idle, speech_needs_ = stage::idle;
  bool finished_ = false;
  std::optional<task_failure> failure_;

protected:
  llm_feed feed_;
  speech_costs costs_;
  engine_clock::duration spent_{0};
};

/// Whether a stage is prepared on other threads, so that the engine can only wait.
bool is_elsewhere(stage at);

} // namespace parley::inference
