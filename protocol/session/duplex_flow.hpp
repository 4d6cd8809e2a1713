#pragma once

#include "conversation/engine.hpp"
#include "protocol/limits.hpp"
#include "protocol/session/effect_writer.hpp"
#include "protocol/session/speaking_turn.hpp"
#include "protocol/session/unit_backlog.hpp"
#include "protocol/session/unit_gatherer.hpp"
#include "protocol/time_point.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parley::protocol {

/// What the session's owner must know after a call.
enum class flow_verdict : std::uint8_t {
  go_on,
  answered,    ///< a step or turn ended
  context_full ///< the next step would not fit into the context
};

/// An ACTIVE audio or video session: units in, steps one at a time, answers out (docs/protocol.md section 6).
class duplex_flow {
public:
  /// `limits` and `random` must outlive it. `init`: as in `open_engine`.
  duplex_flow(const session_limits& limits, std::shared_ptr<const init_event> init, const conversation::opened& opened,
              random_source& random);

  /// `ordinal` is the append's number in the session. Its `input_id` names the units that it completes
  /// (docs/protocol.md 4).
  flow_verdict on_append(append_event event, std::uint64_t ordinal, time_point now, effect_writer& out);

  /// Whether there is room for this context. If not, the append is to be refused.
  bool has_room(const std::vector<text_message>& context) const;

  /// Returns `answered` if the step ended and the session continues.
  flow_verdict on_output(conversation::step_output output, time_point now, effect_writer& out);

  bool is_running(std::uint64_t unit) const { return running_ && running_->number == unit; }

  /// The running step failed. `proceed` starts the next one.
  void on_failure(effect_writer& out);
  flow_verdict proceed(time_point now, effect_writer& out) { return start_next(now, out); }

  /// From here to `on_restored` no step is submitted.
  void on_worker_lost() {
    suspended_ = catching_up_ = true;
    backlog_.bring_back(); // Because the worker is lost, and not because the client is too fast.
  }

  /// The client is back and sends what it could not send meanwhile; until then, at least, nothing of it is dropped.
  void on_resumed(time_point until) {
    catching_up_ = true;
    catch_up_until_ = until;
  }

  /// Resubmits the step that was running when the worker was lost, or submits the next one.
  flow_verdict on_restored(time_point now, effect_writer& out);

  const usage& total() const { return total_; }

  /// What else the session took.
  void count(const usage& more) { total_ += more; }

  /// Whether the next append's context is read by a model that has listened for a second: no step runs or waits, and the
  /// last one was answered by `listen`.
  bool is_listening() const { return listening_ && !running_ && !suspended_ && !backlog_.next(); }

  /// Bytes of context that wait for the next unit.
  std::size_t waiting_context() const { return backlog_.context_bytes() + bytes_of(gatherer_.pending_context()); }

  /// How many steps have begun.
  std::uint64_t units() const { return next_number_; }

private:
  struct running_step {
    std::uint64_t number = 0; ///< also the chunk_index
    gathered_unit unit;
    time_point started;
    bool cut = false;       ///< answer `listen`, whatever the engine still reports
    bool named = false;     ///< a delta with chunk_index and usages has been sent
    bool text_left = false; ///< a text delta has been sent
    usage used;
    std::string held_text; ///< legacy: text to be merged with the audio of the same step
    std::string said;      ///< with `config.unit_responses`: the unit's text so far
  };

  flow_verdict start_next(time_point now, effect_writer& out);
  void acknowledge(const std::string& input_id, effect_writer& out);
  void submit(effect_writer& out) const;
  void answer(conversation::step_output&& output, time_point now, effect_writer& out);
  void close_unit(std::string_view reason, std::string turn_id, effect_writer& out);
  metrics full_metrics(const conversation::step_metrics& of, time_point now) const;
  void warn_of_context(effect_writer& out);
  int worst_case(const gathered_unit& unit) const;

  const session_limits& limits_;
  std::shared_ptr<const init_event> init_;
  bool bounded_; ///< no sliding window, so the context can fill up
  unit_gatherer gatherer_;
  unit_backlog backlog_;
  std::vector<gathered_unit> completed_; ///< working memory of on_append
  std::optional<running_step> running_;
  std::uint64_t next_number_ = 0;
  bool suspended_ = false;   ///< it has no worker
  bool catching_up_ = false; ///< set until the backlog has been worked off after that time
  time_point catch_up_until_{};
  speaking_turn turn_;
  usage total_;
  int prompt_tokens_;
  int kv_length_;
  int answered_steps_ = 0;
  bool listening_ = true;
  bool warned_ = false; ///< go_away{context_full} has been sent
};

} // namespace parley::protocol
