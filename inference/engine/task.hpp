#pragma once

#include "inference/engine/scheduler.hpp"
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
  failure kind = failure::inference;
  std::string message;
};

/// What a task puts into its session's KV cache, and what the language model makes of it.
struct llm_feed {
  // stage::prefill
  at::Tensor rows;                ///< [n, hidden]
  std::int64_t done = 0;          ///< how many of them are in the cache
  bool wants_logits = false;      ///< of the last one
  std::vector<std::int64_t> kept; ///< those whose hidden states are wanted: then all go in one call

  // stage::decode
  token_id token = 0; ///< the one to be fed

  // what came out
  at::Tensor hidden;                   ///< [1, hidden] of the newest row
  at::Tensor logits;                   ///< float32 [vocabulary] on the CPU, of the newest row
  std::vector<at::Tensor> kept_hidden; ///< [1, hidden] of each row in `kept`

  std::int64_t left() const { return rows.defined() ? rows.size(0) - done : 0; }
};

/// Whether a task that needs one stage may need another one next.
struct transition {
  stage from, to;
};

/// Milliseconds of batched calls that a task took part in.
struct speech_costs {
  double tts_ms = 0;
  double token2wav_ms = 0;
};

/// What a session is doing: opening, answering a unit or a turn, or sliding its window. A task owns that state and decides
/// what comes next: it names the stage that it needs, the engine runs the stage in one batched call for all tasks that need
/// it and gives each its result, until the task has finished or failed. The thinker and the talker each need a stage: a
/// chat answer continues to be generated while it is spoken.
///
/// An exception from a task is its failure. Only the engine's thread uses it, except for `draw`.
class task {
public:
  virtual ~task() = default;
  task(const task&) = delete;
  task& operator=(const task&) = delete;

  // ---- life cycle

  /// Called once, when the session has nothing else to do.
  virtual void begin() = 0;

  bool finished() const { return finished_; }
  const std::optional<task_failure>& failed_with() const { return failure_; }

  /// The number of the unit or turn under way. If the task fails, that number is answered and the session goes on. None =
  /// a failure ends the session.
  virtual std::optional<std::uint64_t> number() const { return std::nullopt; }

  /// Takes the session back to where it was before `begin`. Only with a `number`.
  virtual void take_back();

  /// `cut` and `cancel_turn` arrived while it runs.
  virtual void cut() {}
  virtual void cancel() {}

  // ---- what the scheduler asks

  session& owner() const { return session_; }
  stage needs() const { return needs_; }               ///< of the thinker: idle to decode
  stage speech_needs() const { return speech_needs_; } ///< of the talker: idle, voice, speak or sound
  virtual engine_clock::time_point deadline() const { return began_ + std::chrono::seconds(1); }
  virtual std::int64_t rows_left() const { return feed_.left(); } ///< of a prefill; pieces to be seen
  virtual bool divisible() const { return false; }                ///< its prefill may be cut into several passes
  virtual bool is_unit() const { return false; }                  ///< of a running conversation: waiting makes it late

  // ---- stages prepared elsewhere: look, same_prompt, voice

  /// Asked before each pass while it needs `look` or `same_prompt`: what it waits for may be there.
  virtual void resume();
  virtual void on_voice(std::shared_ptr<const speech::voice> voice);

  // ---- stage::hear

  /// Where the stream stood before the unit, and its next second; asked anew when a call has failed.
  virtual thinker::fresh_sound next_sound();
  virtual void on_heard(at::Tensor rows); ///< [tokens, hidden]

  // ---- stage::see

  /// Up to `most` of the pieces that were not seen yet, in order.
  virtual std::vector<const vision::patch_grid*> next_pieces(std::int64_t most);
  virtual void on_seen(at::Tensor rows); ///< [pieces, query_num, hidden]

  // ---- stage::clips

  virtual thinker::clip_hearing& clips();
  virtual void on_clips_heard(at::Tensor rows); ///< [tokens, hidden]

  // ---- stage::prefill, stage::decode

  llm_feed& feed() { return feed_; }
  virtual void on_prefilled(); ///< all rows of `feed` are in the cache
  virtual void on_token_fed(); ///< so is its token, and what came out of it is there
  /// Whether it wants a token sampled from the newest logits.
  virtual bool wants_token() const { return false; }
  /// Draws it. Runs beside other tasks' on other threads.
  virtual token_id draw(std::span<float> logits);
  virtual void on_token_drawn(); ///< it is `feed().token`

  // ---- stage::speak, stage::sound

  virtual speech::tts_step speech_step();
  virtual void on_speech_token();
  virtual speech::token2wav::job next_window();
  virtual void on_sound(at::Tensor samples); ///< float32 [n] on the CPU, 24 kHz
  speech_costs& costs() { return costs_; }

protected:
  /// `allowed`: how the half that thinks may go on, static.
  task(session& owner, std::span<const transition> allowed) : session_(owner), allowed_(allowed) {}

  void need(stage next);
  void need_speech(stage next);
  void prefill(at::Tensor rows); ///< needs `prefill` for these
  void set_finished();
  void fail(failure kind, std::string message);

  engine_clock::time_point began_, prefilled_;

private:
  session& session_;
  std::span<const transition> allowed_;
  stage needs_ = stage::idle, speech_needs_ = stage::idle;
  bool finished_ = false;
  std::optional<task_failure> failure_;

protected:
  llm_feed feed_;
  speech_costs costs_;
};

/// Stages that are prepared on other threads: the engine can only wait.
bool is_elsewhere(stage at);

} // namespace parley::inference
