#pragma once

#include "protocol/effect_writer.hpp"
#include "protocol/engine_reports.hpp"
#include "protocol/limits.hpp"
#include "protocol/speaking_turn.hpp"
#include "protocol/unit_backlog.hpp"
#include "protocol/unit_gatherer.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parley::protocol {

/// What the caller, who owns the session's state, has to know after a call.
enum class flow_verdict : std::uint8_t {
  go_on,
  answered,    ///< a step or turn came to its end
  context_full ///< the next step would not fit
};

/// An ACTIVE audio or video session: units in, steps one at a time, answers out (PROTOCOL.md section 6).
class duplex_flow {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// `limits` and `random` outlive it. `init`: as in `open_engine`.
  duplex_flow(const session_limits& limits, std::shared_ptr<const init_event> init, const engine_opened& opened,
              random_source& random);

  /// `ordinal`: of the append among all of the session. Its `input_id` names the units that it completes (PROTOCOL.md 4).
  flow_verdict on_append(append_event event, std::uint64_t ordinal, time_point now, effect_writer& out);

  /// `answered` when the step ended and the session goes on.
  flow_verdict on_report(step_report report, time_point now, effect_writer& out);

  bool is_running(std::uint64_t unit) const { return running_ && running_->number == unit; }

  /// The running step came to nothing. `proceed` goes on with the next one.
  void on_failure(effect_writer& out);
  flow_verdict proceed(time_point now, effect_writer& out) { return start_next(now, out); }

  /// From here to `on_restored` no step is submitted.
  void on_worker_lost() {
    suspended_ = catching_up_ = true;
    backlog_.bring_back(); // not the client was too fast
  }

  /// Its client is back and sends what it could not send meanwhile: that is kept until then, at least.
  void on_resumed(time_point until) {
    catching_up_ = true;
    catch_up_until_ = until;
  }

  /// Submits the step that was running when the worker was lost again, or the next one.
  flow_verdict on_restored(time_point now, effect_writer& out);

  const usage& total() const { return total_; }

private:
  struct running_step {
    std::uint64_t number = 0; ///< also the chunk_index
    gathered_unit unit;
    time_point started;
    bool cut = false;       ///< answers `listen`, whatever still comes
    bool named = false;     ///< a delta has left, with chunk_index and usages
    bool text_left = false; ///< a text delta has left
    usage used;
    std::string held_text; ///< legacy: joined with the audio of the same step
    std::string said;      ///< with `config.unit_responses`: its text so far
  };

  flow_verdict start_next(time_point now, effect_writer& out);
  void acknowledge(const std::string& input_id, effect_writer& out);
  void submit(effect_writer& out) const;
  void answer(step_report&& report, time_point now, effect_writer& out);
  void close_unit(std::string_view reason, std::string turn_id, effect_writer& out);
  metrics full_metrics(metrics measured, time_point now) const;
  void warn_of_context(effect_writer& out);
  int worst_case(const gathered_unit& unit) const;

  const session_limits& limits_;
  std::shared_ptr<const init_event> init_;
  bool bounded_; ///< no sliding window: the context can be full
  unit_gatherer gatherer_;
  unit_backlog backlog_;
  std::vector<gathered_unit> completed_; ///< scratch of on_append
  std::optional<running_step> running_;
  std::uint64_t next_number_ = 0;
  bool suspended_ = false;   ///< no worker
  bool catching_up_ = false; ///< since then the backlog has not been worked off
  time_point catch_up_until_{};
  speaking_turn turn_;
  usage total_;
  int prompt_tokens_;
  int kv_length_;
  int answered_steps_ = 0;
  bool warned_ = false; ///< go_away{context_full} was sent
};

} // namespace parley::protocol
