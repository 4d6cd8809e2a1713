#pragma once

#include "protocol/effect_writer.hpp"
#include "protocol/engine_reports.hpp"
#include "protocol/ids.hpp"
#include "protocol/limits.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

namespace parley::protocol {

/// An ACTIVE chat session: turns one at a time, up to `max_pending_turns` behind the running one (PROTOCOL.md 3.5, 8).
class chat_flow {
public:
  using time_point = std::chrono::steady_clock::time_point;

  chat_flow(std::shared_ptr<const init_event> init, random_source& random) : init_(std::move(init)), random_(random) {}

  /// GENERATING; otherwise IDLE.
  bool generating() const { return running_.has_value(); }

  /// Another append would be one too many.
  bool full() const { return pending_.size() >= max_pending_turns; }

  /// When the running turn began.
  std::optional<time_point> started() const { return running_ ? std::optional(running_->started) : std::nullopt; }

  /// Only if not `full`.
  void on_append(chat_append_event event, time_point now, effect_writer& out);

  // Reports of any turn but the running one are late, and ignored.
  void on_report(turn_report report, effect_writer& out);

  /// True if the running turn ended.
  bool on_done(turn_done_report report, time_point now, effect_writer& out);

  bool is_running(std::uint64_t turn) const { return running_ && running_->number == turn; }

  /// The running turn came to nothing, and the engine said so. With `tell`, `response.done{error}` ends it on the wire;
  /// without, the `error` event was the whole answer. `proceed` goes on with the next one.
  void on_failure(bool tell, time_point now, effect_writer& out);
  void proceed(time_point now, effect_writer& out) { start_next(now, out); }

  /// The engine confirmed the end of a turn that `on_turn_over` gave up.
  void on_abandoned_end(std::uint64_t turn, effect_writer& out);

  /// The running turn takes too long: it is given up. `proceed` goes on with the next one.
  void on_turn_over(time_point now, effect_writer& out);

  /// The client closes: a running turn ends with `cancelled`.
  void on_leave(time_point now, effect_writer& out);

  /// From here to `on_restored` nothing is submitted; then the running turn is, once more.
  void on_worker_lost();
  void on_restored(effect_writer& out);

  const usage& total() const { return total_; }

private:
  struct turn {
    std::uint64_t number = 0;
    std::shared_ptr<const chat_append_event> request;
    std::string input_id;
    std::string response_id;
    time_point received;
    time_point started;
    bool submitted = false;
    std::string text; ///< said so far
  };

  void start_next(time_point now, effect_writer& out);
  void submit(effect_writer& out);
  turn_done_report what_was_said() const;
  void end_turn(turn_done_report report, std::string reason, time_point now, effect_writer& out);

  std::shared_ptr<const init_event> init_;
  random_source& random_;
  std::deque<turn> pending_;
  std::optional<turn> running_;
  std::optional<std::uint64_t> abandoned_; ///< the engine still works on it
  std::uint64_t next_number_ = 1;
  bool suspended_ = false; ///< no worker
  usage total_;
};

} // namespace parley::protocol
