#pragma once

#include "protocol/engine_reports.hpp"
#include "protocol/ids.hpp"
#include "protocol/limits.hpp"
#include "protocol/session_effects.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace parley::protocol {

using time_point = std::chrono::steady_clock::time_point;

/// PROTOCOL.md section 5.
enum class session_state : std::uint8_t { queued, connected, initializing, active, closed };

/// What is known of a connection when its session begins.
struct session_origin {
  std::optional<std::string> mode; ///< `?mode=` as it came; none = absent
  std::string session_id;          ///< of the current dialect: sanitise_session_id of the query's, else make_session_id
  std::string legacy_id;           ///< legacy_ids::next
  std::optional<std::string> recording_id; ///< told in `session.created`
  time_point accepted;                     ///< all total durations count from here
};

/// The session's side of the wire as a pure function of (state, event, time): every rule of PROTOCOL.md sections 2, 5,
/// 6, 8, 9 and 10. Each call takes one event and returns what is to be done, in order. Nothing here blocks, throws for
/// what a client can cause, or reads a clock.
///
/// Contract with the shell: carry the effects out in order; after every call re-arm one timer for `next_deadline()` and
/// answer it with `tick`; drop reports of an engine session that was replaced (worker epoch). Not thread-safe; neither
/// copied nor moved, because effects point to its ids.
class session_machine {
public:
  session_machine(session_origin origin, session_limits limits, capabilities able, random_source random);
  ~session_machine();
  session_machine(const session_machine&) = delete;
  session_machine& operator=(const session_machine&) = delete;

  // ---- the connection
  // -------------------------------------------------------------------------------------------------

  /// The first call: enqueues, or refuses an unknown mode.
  effects start(time_point now);

  /// Instead of `start` when the query's session id belongs to a live session: `invalid_payload`, close 1008.
  effects refuse_duplicate_id(time_point now);

  /// One text frame. It may be changed and must have simdjson's padding as spare capacity (session_inbox::text).
  effects on_frame(std::string& frame, time_point now);

  effects on_binary(time_point now);

  /// `POST /sessions/{id}/close`: as if the client had sent session.close.
  effects on_close_request(std::string_view reason, time_point now);

  /// The socket is gone. Also to be called after the machine itself closed it: then it does nothing.
  effects on_gone(time_point now);

  // ---- the queue
  // ------------------------------------------------------------------------------------------------------

  effects on_queued(queue_place place, time_point now);
  effects on_queue_update(queue_place place, time_point now);
  effects on_granted(time_point now);

  /// service_unavailable, queue_full, worker_busy or worker_connect_failed.
  effects on_refused(error_code code, std::string message, time_point now);

  // ---- the engine
  // -----------------------------------------------------------------------------------------------------

  effects on_engine_opened(const engine_opened& report, time_point now);
  effects on_engine_failed(engine_failure failure, time_point now);
  effects on_step_report(step_report report, time_point now);
  effects on_turn_report(turn_report report, time_point now);
  effects on_turn_done(turn_done_report report, time_point now);

  /// The engine session is gone and its slot is free.
  effects on_engine_closed(time_point now);

  /// The worker died or left. Its slot is gone with it: no `release_worker` follows.
  effects on_worker_lost(time_point now);

  /// The journal is replayed on the new worker (after `restore_session`).
  effects on_restored(time_point now);

  // ---- the house
  // ------------------------------------------------------------------------------------------------------

  effects on_drain(time_point now);

  /// To be called at `next_deadline()`; earlier or later calls are harmless.
  effects tick(time_point now);

  /// When `tick` has something to do next; none = never.
  std::optional<time_point> next_deadline() const;

  // ---- what the shell may ask
  // -----------------------------------------------------------------------------------------

  session_state state() const;
  dialect spoken() const;
  mode kind() const;

  /// Of the dialect in use; the current one's before a dialect is fixed.
  const std::string& id() const;

  /// Whether `session.created` was sent.
  bool created() const;

  /// Whether the session holds a slot, or one that still has to be given back.
  bool holds_worker() const;

  /// Why it ended, for logs and recordings: the wire's word, `client_closed`, or what the close frame says. Empty
  /// before the end.
  const std::string& closed_reason() const;

  /// Tokens of the whole session so far.
  usage total() const;
};

} // namespace parley::protocol
