#pragma once

#include "base/assert.hpp"
#include "base/token_bucket.hpp"
#include "protocol/codec/client_codec.hpp"
#include "protocol/delegation/delegations.hpp"
#include "protocol/flood_guard.hpp"
#include "protocol/ids.hpp"
#include "protocol/limits.hpp"
#include "protocol/session/chat_flow.hpp"
#include "protocol/session/closing.hpp"
#include "protocol/session/duplex_flow.hpp"
#include "protocol/session/effect_writer.hpp"
#include "protocol/session/resume_token.hpp"
#include "protocol/session/session_clocks.hpp"
#include "protocol/session/session_effects.hpp"
#include "protocol/session/session_table.hpp"
#include "protocol/speech/turn_listener.hpp"
#include "protocol/time_point.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parley::protocol {

/// What is known about a connection when its session begins.
struct session_origin {
  std::optional<std::string> mode;         ///< `?mode=` as received; none = absent
  std::string session_id;                  ///< current dialect: sanitise_session_id of the query's id, or
                                           ///< make_session_id
  std::string legacy_id;                   ///< legacy dialect: legacy_ids::next
  std::optional<std::string> recording_id; ///< reported in `session.created`
  time_point accepted;                     ///< total durations are measured from here
};

/// What the session holds of the server's resources.
enum class holding : std::uint8_t { nothing, ticket, slot, engine, ending_engine };

/// The session's side of the wire as a pure function of (state, event, time): every rule of docs/protocol.md sections
/// 2, 5, 6, 8, 9 and 10. Each call takes one event and returns what to do, in order. Nothing here blocks, reads a
/// clock, or throws for anything that a client can cause.
///
/// Contract with the caller: carry out the effects in order; after every call, set one timer to `next_deadline()` and
/// call `tick` when it expires; drop reports of an engine session that was replaced (worker epoch). Not thread-safe.
/// Neither copied nor moved, because effects point to its ids.
class session_machine {
public:
  /// `tokens` makes resume tokens; without it, `random` does.
  session_machine(session_origin origin, session_limits limits, capabilities able, random_source random,
                  token_source tokens = {});
  session_machine(const session_machine&) = delete;
  session_machine& operator=(const session_machine&) = delete;

  // ---- the connection

  /// The first call: enqueues the session, or refuses an unknown mode.
  effects start(time_point now);

  /// Instead of `start`, if the session id of the query belongs to a live session: `invalid_payload`, close 1008.
  effects refuse_duplicate_id(time_point now);

  /// One text frame, valid UTF-8.
  effects on_frame(std::string_view frame, time_point now);

  /// The same from a client inside the process. An error: an append that could not be made, for the reason that it names.
  effects on_event(result<client_event> event, time_point now);

  /// A binary frame: close 1003.
  effects on_binary(time_point now);

  /// `POST /sessions/{id}/close`: handled as if the client had sent session.close.
  effects on_close_request(std::string_view reason, time_point now);

  /// The socket is gone. Call it also after the machine closed the socket: then it does nothing. A session that can be
  /// resumed lives on for a while.
  effects on_gone(time_point now);

  /// A new connection asks to resume the session, whether or not the old connection is known to be gone. On success the
  /// effects are for the new connection, and the caller closes the old one. On failure the error is for the new
  /// connection, and nothing has changed. \param oldest_kept the number of the oldest event that can be sent again
  tl::expected<effects, error> on_resume(const resume_claim& claim, std::uint64_t oldest_kept, time_point now);

  /// Updates what the workers can do, if that became known after the start. Only before `session.created`.
  void learn(capabilities able, int context_tokens, const conversation::unit_cost& unit) {
    able_ = able;
    limits_.context_tokens = context_tokens;
    limits_.unit = unit;
  }

  // ---- the queue

  // Answers to `enqueue` (docs/protocol.md 7).
  effects on_queued(queue_position place, time_point now);
  effects on_queue_update(queue_position place, time_point now);
  effects on_granted(time_point now);

  /// service_unavailable, queue_full, worker_busy or worker_connect_failed.
  effects on_refused(error_code code, std::string message, time_point now);

  // ---- the engine

  /// An answer to `open_engine`, to a command or to `close_engine`, whichever session it names.
  effects on_engine(conversation::event answer, time_point now);

  effects on_engine_opened(const conversation::opened& answer, time_point now);
  effects on_engine_failed(conversation::failed failure, time_point now);
  effects on_step(conversation::step_output output, time_point now);
  effects on_chat_delta(conversation::chat_delta delta, time_point now);
  effects on_chat_done(conversation::chat_done done, time_point now);

  /// The engine session is gone and its slot is free.
  effects on_engine_closed(time_point now);

  /// The worker died or left and took its slot with it: no `release_worker` follows.
  effects on_worker_lost(time_point now);

  /// The same, but it was the second worker to die with the work under way: no third one gets it.
  effects on_work_lost_twice(time_point now);

  /// The journal has been replayed on the new worker (after `restore_session`).
  effects on_restored(time_point now);

  /// The answer to `transcribe_turn`.
  effects on_transcript(const transcript& heard, time_point now);

  // ---- the server

  /// The server is shutting down (docs/protocol.md 5, "server drains").
  effects on_drain(time_point now);

  /// The API key has used nine tenths of a quota; what is left lasts this long if all goes on as before.
  effects on_quota_low(std::chrono::milliseconds left, time_point now);

  /// The API key has used up what it may; `words` say which quota, and when it is renewed.
  effects on_quota_spent(std::string words, time_point now);

  /// The server has failed in its work for this session. Anything the failed call left undone is dropped.
  effects on_fault(time_point now);

  /// Call it at `next_deadline()`; earlier or later calls are harmless.
  effects tick(time_point now);

  /// When `tick` has something to do next; none = never.
  std::optional<time_point> next_deadline() const;

  // ---- another process takes it up (actors/log/rebuild.hpp)

  /// Everything that had happened to it was repeated, and its effects were not carried out again. Now its client and its
  /// worker are gone, as the process is that had them. Only in ACTIVE.
  effects on_taken_up(time_point now);

  /// This process ends, and the next one takes the session up: tells the client, which should come back after that time.
  /// The machine must get no more events.
  effects on_handover(std::chrono::milliseconds back_after, time_point now);

  // ---- queries

  session_state state() const { return state_; }
  dialect spoken() const { return spoken_; }
  mode kind() const { return mode_; }

  /// In the dialect in use; in the current dialect until one is fixed.
  const std::string& id() const { return spoken_ == dialect::legacy ? origin_.legacy_id : origin_.session_id; }

  /// Whether the last frame was an accepted append.
  bool took_input() const { return took_input_; }

  /// Whether `session.created` has been sent.
  bool created() const { return created_; }

  /// Whether it can be resumed; if so, its events are numbered.
  bool resumable() const { return resume_token_.has_value(); }

  /// Its resume token; null if it cannot be resumed.
  const resume_token* token() const { return resume_token_ ? &*resume_token_ : nullptr; }

  /// The init that is held or in use, if any.
  const std::shared_ptr<const init_event>& init() const { return init_; }

  /// As of now, for a session that begins in the same way.
  const session_origin& origin() const { return origin_; }
  const session_limits& limits() const { return limits_; }
  const capabilities& able() const { return able_; }

  /// Whether the session holds a slot, or one that has yet to be returned.
  bool holds_worker() const { return holding_ != holding::nothing && holding_ != holding::ticket; }

  /// Why it ended, for logs and recordings: the reason on the wire, `client_closed`, or the text of the close frame.
  /// Empty before the end.
  const std::string& closed_reason() const { return closed_reason_; }

  /// The same as one of a closed set of reasons, for metrics. `other` before the end.
  session_end ended_as() const { return ended_as_; }

  /// Tokens of the whole session so far.
  usage total() const;

private:
  /// The data of an event; each action reads what it needs.
  struct occurrence {
    time_point now;
    const envelope* frame = nullptr;       ///< of a client's event: this, ...
    result<client_event>* event = nullptr; ///< ... or this
    std::string_view name = {};            ///< of the client's event
    conversation::failed* failure = nullptr;
    const conversation::opened* opened = nullptr;
    std::string_view reason = {}; ///< the client's reason for closing
    error refusal = {};

    // Accessors that assert what the table guarantees.
    const envelope& its_frame() const {
      PARLEY_ASSERT(frame, "a client's event comes with its frame");
      return *frame;
    }

    /// What the client sent, if it never was text. `otherwise`: what is wrong with it if it is not what it should be.
    template<class Event>
    result<Event> its(std::string_view otherwise) const {
      PARLEY_ASSERT(event, "a client's event comes with its content");
      if (!*event) return tl::unexpected(event->error());
      if (auto* const found = std::get_if<Event>(&**event)) return std::move(*found);
      return tl::unexpected(error{error_code::missing_field, std::string(otherwise) + ": required"});
    }
    const conversation::failed& its_failure() const {
      PARLEY_ASSERT(failure, "a failure comes with its words");
      return *failure;
    }
    const conversation::opened& its_opened() const {
      PARLEY_ASSERT(opened, "an engine that is ready says how it is");
      return *opened;
    }
  };

  // The flow of a session that is ACTIVE, in its mode.
  chat_flow& its_chat() {
    PARLEY_ASSERT(chat_, "a chat that talks has a flow");
    return *chat_;
  }
  duplex_flow& its_duplex() {
    PARLEY_ASSERT(duplex_, "a session of audio or video that talks has a flow");
    return *duplex_;
  }

  void perform(session_event event, const occurrence& what);
  session_event classify(const envelope& frame) const;
  session_event classify(const result<client_event>& event) const;

  void connect(time_point now);
  void read_init(const occurrence& what);
  void begin_init();
  void back_to_connected();
  void begin_talk(const conversation::opened& opened, time_point now);
  void take_append(const occurrence& what);
  void name_input(std::string& input_id) const;
  void take_units(const occurrence& what);
  void take_turn(const occurrence& what);
  void listen_to_user(const pcm& samples);
  void begin_delegation();
  std::string_view why_no_tools() const;
  void judge_turn(const speech::turn_listener::turn& turn);
  void take_result(const occurrence& what);
  void tell_results(std::vector<text_message>& context, time_point now);
  void expire_delegations(time_point now);
  void wind_delegation_clock();
  void note_wishes(session_created& to) const;
  void fail_init(const conversation::failed& failure);
  void refuse_input(const conversation::failed& failure, time_point now);
  void fail_input(const conversation::failed& failure, time_point now);
  void queue_again();
  void move_on(time_point now);

  void expire(session_clock clock, time_point now);
  void expire_turn(time_point now);
  void warn_of_time(time_point now);
  void wind_chat_clocks();
  void choose_mode(mode chosen);

  void follow(flow_verdict verdict);
  bool one_failure_too_many() { return ++failures_in_a_row_ >= max_inference_failures; }
  void reject(error why, time_point now);
  void end(close_cause cause, std::string_view asked = "user_stop");
  void hang_up(hang_up_cause cause);
  void hang_up(std::uint16_t code, std::string why);
  void let_go();

  effect_writer writer();
  void say(server_event event) { writer().say(std::move(event)); }
  effects take() { return std::exchange(out_, {}); }

  session_origin origin_;
  session_limits limits_;
  capabilities able_;
  random_source random_;
  token_source tokens_;

  session_state state_ = session_state::queued;
  holding holding_ = holding::nothing;
  dialect spoken_ = dialect::undecided;
  mode mode_ = mode::video;
  std::optional<mode> url_mode_;
  std::shared_ptr<const init_event> init_; ///< the init: held, being opened, or in use
  bool told_to_wait_ = false;              ///< `session.queued` has been sent, but no `queue_done` yet
  bool told_to_begin_ = false;             ///< `queue_done` has been sent
  bool created_ = false;
  int lost_before_talk_ = 0;
  int failed_inits_ = 0;
  int failures_in_a_row_ = 0;
  std::uint64_t inputs_ = 0;
  bool took_input_ = false;
  bool draining_ = false;
  bool warned_of_quota_ = false;
  time_point time_limit_;
  time_point init_deadline_;
  time_point idle_since_;
  session_clocks clocks_;
  flood_guard flood_;
  base::token_bucket schema_steps_{6e6, 1e6}; ///< of checking strict schemas: 3 ms a second
  std::unique_ptr<duplex_flow> duplex_;       ///< these two: null until the session talks
  std::unique_ptr<chat_flow> chat_;
  std::optional<speech::turn_listener> user_; ///< with `config.transcribe_input`, or functions that may be called

  /// The functions that a conversation may call, as a turn of its user is judged by them; null = none.
  std::shared_ptr<const conversation::turn_request> offer_;
  delegations delegations_;

  /// A turn that is being written down.
  struct unwritten_turn {
    std::uint64_t number = 0;
    std::int64_t start_ms = 0, end_ms = 0;
  };
  void take_judgement(const unwritten_turn& turn, const transcript& heard, time_point now);

  std::vector<unwritten_turn> unwritten_;
  std::vector<unwritten_turn> unjudged_; ///< the same of turns that are being judged
  std::uint64_t last_turn_ = 0;
  std::optional<resume_token> resume_token_;
  std::uint64_t last_event_id_ = 0;
  std::uint64_t most_claimed_ = 0; ///< its client may know events up to this one that a process which has died had sent
  std::string closed_reason_;
  session_end ended_as_ = session_end::other;
  effects out_;
};

} // namespace parley::protocol
