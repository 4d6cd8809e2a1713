#pragma once

#include "conversation/engine.hpp"
#include "protocol/ids.hpp"
#include "protocol/limits.hpp"
#include "protocol/session/effect_writer.hpp"
#include "protocol/time_point.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

namespace parley::protocol {

/// An ACTIVE chat session: one turn at a time, with up to `max_pending_turns` waiting behind it (docs/protocol.md 3.5,
/// 8).
class chat_flow {
public:
  chat_flow(std::shared_ptr<const init_event> init, random_source& random) : init_(std::move(init)), random_(random) {}

  /// GENERATING if true, otherwise IDLE.
  bool generating() const { return running_.has_value(); }

  /// Whether another append of that many bytes would exceed a limit.
  bool full(std::size_t bytes) const {
    return pending_.size() >= max_pending_turns || (!pending_.empty() && pending_bytes_ + bytes > max_pending_bytes);
  }

  /// When the running turn began.
  std::optional<time_point> started() const { return running_ ? std::optional(running_->started) : std::nullopt; }

  /// Requires !full(bytes). `bytes`: of the frame.
  void on_append(chat_append_event event, std::size_t bytes, time_point now, effect_writer& out);

  // Ignores late reports, which concern another turn than the running one.
  void on_delta(conversation::chat_delta delta, effect_writer& out);

  /// Returns true if the running turn ended.
  bool on_done(conversation::chat_done done, time_point now, effect_writer& out);

  bool is_running(std::uint64_t turn) const { return running_ && running_->number == turn; }

  /// The engine failed the running turn. With `tell`, `response.done{error}` ends it on the wire; without, the `error`
  /// event was the whole answer. `proceed` starts the next turn.
  void on_failure(bool tell, time_point now, effect_writer& out);
  void proceed(time_point now, effect_writer& out) { start_next(now, out); }

  /// The engine confirmed the end of a turn that `on_turn_over` had abandoned.
  void on_abandoned_end(std::uint64_t turn, effect_writer& out);

  /// Abandons the running turn, which takes too long. `proceed` starts the next one.
  void on_turn_over(time_point now, effect_writer& out);

  /// The client is closing: a running turn ends as `cancelled`.
  void on_leave(time_point now, effect_writer& out);

  /// From here to `on_restored` nothing is submitted; then the running turn is submitted again.
  void on_worker_lost();
  void on_restored(effect_writer& out);

  const usage& total() const { return total_; }

private:
  struct turn {
    std::uint64_t number = 0;
    std::shared_ptr<const chat_append_event> request;
    std::size_t bytes = 0; ///< of the frame that it came in
    std::string input_id;
    std::string response_id;
    time_point received;
    time_point started;
    bool submitted = false;
    std::string text;                     ///< text sent so far
    std::vector<token_score> scores = {}; ///< for an answer without deltas
    std::vector<std::string> calls = {};  ///< ids of the calls that have begun
  };

  void start_next(time_point now, effect_writer& out);
  void submit(effect_writer& out);
  void say_calls(std::vector<conversation::call_piece> pieces, effect_writer& out);
  conversation::chat_done what_was_said() const;
  void end_turn(conversation::chat_done done, std::string reason, const metrics& measured, time_point now,
                effect_writer& out);

  std::shared_ptr<const init_event> init_;
  random_source& random_;
  std::deque<turn> pending_;
  std::size_t pending_bytes_ = 0;
  std::optional<turn> running_;
  std::optional<std::uint64_t> abandoned_; ///< a turn that the engine is still working on
  std::uint64_t next_number_ = 1;
  bool suspended_ = false; ///< it has no worker
  usage total_;
};

} // namespace parley::protocol
