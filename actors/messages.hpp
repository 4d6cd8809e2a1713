#pragma once

#include "actors/bytes/unit_codec.hpp"
#include "actors/capacity/prefix_hash.hpp"
#include "actors/capacity/worker_capacity.hpp"
#include "actors/gateway_api.hpp"
#include "actors/keys.hpp"
#include "actors/large_frames.hpp"
#include "actors/resume_request.hpp"
#include "conversation/engine.hpp"
#include "inference/engine.hpp"
#include "protocol/errors.hpp"
#include "protocol/events.hpp"
#include "protocol/transcript.hpp"

#include <caf/all.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// The messages between the actors of a server: aggregates without behaviour, immutable once sent (except that a handler
// which is the only receiver may move from a message through a mutable reference). Samples travel as shared pointers;
// between two nodes, an engine's commands and events are one string of bytes.
namespace parley::actors {

struct server_snapshot;

// ---- to a session
struct guest_said;   // from its client, if that is inside the process
struct client_frame; // from its connection
struct client_binary;
struct client_sound; // in a call
struct client_gone;
struct link_offer;    // from the server core
struct close_request; // from POST /sessions/{id}/close
struct queue_update;  // from the queue manager
struct slot_granted;
struct slot_refused;
struct slot_lost;
struct session_fault;
struct engine_event; // from its worker
struct open_denied;
struct trial_granted;    // from the queue manager
struct move_request;     // from the queue manager, and from POST /sessions/{id}/move
struct drain_request;    // from the server core
struct timer_due;        // from itself
struct transcript_ready; // from its transcription

using session_actor =
    caf::typed_actor<caf::reacts_to<guest_said>, caf::reacts_to<client_frame>, caf::reacts_to<client_binary>,
                     caf::reacts_to<client_gone>, caf::reacts_to<link_offer>, caf::reacts_to<close_request>,
                     caf::reacts_to<queue_update>, caf::reacts_to<slot_granted>, caf::reacts_to<slot_refused>,
                     caf::reacts_to<slot_lost>, caf::reacts_to<session_fault>, caf::reacts_to<engine_event>,
                     caf::reacts_to<open_denied>, caf::reacts_to<trial_granted>, caf::reacts_to<move_request>,
                     caf::reacts_to<drain_request>, caf::reacts_to<timer_due>, caf::reacts_to<transcript_ready>>;

// ---- to the queue manager
struct slot_request; // from sessions
struct slot_cancelled;
struct slot_accepted;
struct slot_freed; // from sessions
struct slot_retyped;
struct slot_impatient;
struct affinity_request;
struct trial_request;
struct trial_over;
struct worker_joins;  // from the server core
struct slots_offered; // from workers
struct capacity_report;
struct worker_leaves;
struct orphan_closed;
struct snapshot_request; // from GET /status and GET /metrics
struct worker_drain;     // from POST /workers/{id}/drain and /resume

using queue_actor =
    caf::typed_actor<caf::reacts_to<slot_request>, caf::reacts_to<slot_cancelled>, caf::reacts_to<slot_accepted>,
                     caf::reacts_to<slot_freed>, caf::reacts_to<slot_retyped>, caf::reacts_to<slot_impatient>,
                     caf::reacts_to<affinity_request>, caf::reacts_to<trial_request>, caf::reacts_to<trial_over>,
                     caf::reacts_to<worker_joins>, caf::reacts_to<slots_offered>, caf::reacts_to<capacity_report>,
                     caf::reacts_to<worker_leaves>, caf::reacts_to<orphan_closed>, caf::reacts_to<snapshot_request>,
                     caf::reacts_to<worker_drain>, caf::reacts_to<drain_request>, caf::reacts_to<timer_due>>;

// ---- to a worker
struct engine_open; // from sessions
struct engine_command;
struct slot_orphaned; // from the queue manager
struct worker_start;  // from the server core or the node registry
struct worker_stop;   // from the process that it runs in
struct engine_up;     // from its engine thread
struct capacity_measured;
struct engine_down;
struct report_due; // from itself

using worker_actor =
    caf::typed_actor<caf::reacts_to<engine_open>, caf::reacts_to<engine_command>, caf::reacts_to<slot_orphaned>,
                     caf::reacts_to<worker_start>, caf::reacts_to<worker_stop>, caf::reacts_to<engine_up>,
                     caf::reacts_to<capacity_measured>, caf::reacts_to<engine_event>, caf::reacts_to<engine_down>,
                     caf::reacts_to<report_due>>;

// ---- the messages themselves

/// Numbers a session's connections: 0 is the first. Messages from connections before the current one are dropped.
using link_number = std::uint64_t;

/// One text frame as received (session_handle::text).
struct client_frame {
  std::string text;
  link_number link = 0;
  std::shared_ptr<large_frames::turn> turn{}; ///< null = it is small, and may be worked on anywhere
};

/// What a client inside the process says (guest_handle). An error: an append that could not be made.
struct guest_said {
  protocol::result<protocol::client_event> event;
  std::shared_ptr<large_frames::turn> turn{}; ///< as above
};

/// What the client of a call says (session_handle::sound).
struct client_sound {
  std::vector<float> samples;
};

/// A binary frame arrived.
struct client_binary {
  link_number link = 0;
};

/// The socket is gone.
struct client_gone {
  link_number link = 0;
};

/// A new connection asks to resume the session.
struct link_offer {
  std::shared_ptr<resume_request> link;
  protocol::resume_claim claim;
};

/// Handled as if the client had sent session.close, with this reason.
struct close_request {
  std::string reason;
};

/// `session.queued` (if first) or `session.queue_update`.
struct queue_update {
  ticket_key ticket;
  bool first;
  protocol::queue_position place;
};

/// Grants this ticket a slot of `worker`, whose key in this server is `key`. Answered by `slot_accepted`, or by
/// `slot_freed` if the session no longer wants it. Also the answer to `affinity_request`.
struct slot_granted {
  ticket_key ticket;
  worker_actor worker;
  worker_key key;
};

/// The ticket has left the queue (docs/protocol.md 10).
struct slot_refused {
  ticket_key ticket;
  protocol::error_code code;
};

/// The worker of this slot is gone, and the slot with it. The session is at the head of the queue for another one with
/// the ticket `next`, and a grant may follow at once. A session that does not want it cancels; one that has no timeout
/// of its own for waiting sends `slot_impatient`.
struct slot_lost {
  ticket_key ticket;
  ticket_key next;
  bool shut_down; ///< the worker was asked to stop
};

/// Work on behalf of this session has failed because of a defect: this session ends, and no other.
struct session_fault {};

/// An engine event for one session, which ignores it if it has given up that engine session.
struct engine_event {
  conversation::event event;
};

/// The worker has no slot left for this open, because others were faster. The granted slot must be returned.
struct open_denied {
  conversation::session_id session = 0;
};

/// Whether the session should move to another worker as soon as one has room.
struct move_request {
  bool go = true;
};

/// The server is shutting down: no new sessions; running ones are warned.
struct drain_request {};

/// The nearest deadline of a pure part has been reached.
struct timer_due {};

/// The answer to what was to be written down.
struct transcript_ready {
  protocol::transcript heard;
};

/// Requests a slot. Answered by `queue_update`s, then `slot_granted` or `slot_refused`.
struct slot_request {
  session_actor session;
  ticket_key ticket; ///< unique in the whole server
  protocol::mode kind;
  bool at_head;
  worker_key avoid;                  ///< any worker but this one; 0 = any
  bool patient;                      ///< the session has its own timeout for waiting without any worker
  std::optional<prefix_hash> prompt; ///< the session's prompt, if known
  std::string address;               ///< address of the client and name of its API key, for the limits on waiting
  std::string key;
  bool background = false; ///< as in `queue_wish`
};

/// The session stops waiting. If a grant is on its way, `slot_freed` returns it.
struct slot_cancelled {
  ticket_key ticket;
};

/// The grant has reached its session, which now holds the slot.
struct slot_accepted {
  ticket_key ticket;
};

/// The slot of this ticket is free again. Unknown tickets are ignored.
struct slot_freed {
  ticket_key ticket = 0;
};

/// `payload.mode` has chosen another mode (docs/protocol.md 1), so the ETA counts this session as `kind`.
struct slot_retyped {
  ticket_key ticket;
  protocol::mode kind;
};

/// The session that waits with this ticket has no timeout of its own for waiting without any worker.
struct slot_impatient {
  ticket_key ticket;
};

/// The session with this slot will begin with this prompt: is there a better worker? Answered by `slot_granted` with
/// the same ticket, for the same worker or another one.
struct affinity_request {
  ticket_key ticket;
  prefix_hash prompt;
};

/// The session with this slot wants to retry work there that was in progress when another worker died. Answered by
/// `trial_granted` as soon as no other session is retrying such work on that worker.
struct trial_request {
  ticket_key ticket;
};

/// The retried work was answered or abandoned.
struct trial_over {
  ticket_key ticket;
};

/// Answers `trial_request`.
struct trial_granted {
  ticket_key ticket;
};

/// A worker was started; it has no slots yet.
struct worker_joins {
  worker_actor worker;
  worker_key key;
  std::string node; ///< the machine or process where it runs; empty = this process
  std::string device;
};

/// `info.slots`: those that this server may fill.
struct slots_offered {
  worker_key key = 0;
  inference::engine_info info;
};

/// A worker's load, at most twice a second.
struct capacity_report {
  worker_key key = 0;
  worker_capacity capacity;
};

/// A worker was asked to stop: it accepts no more sessions, and ends once it has none.
struct worker_leaves {
  worker_key key = 0;
};

/// What a session that has died or moved had open there is closed: its slot is free again. Ignored unless the ticket has a
/// slot of this worker.
struct orphan_closed {
  worker_key key = 0;
  ticket_key ticket = 0;
};

/// Answered by calling `done`, on a scheduler thread.
struct snapshot_request {
  std::function<void(const server_snapshot&)> done;
};

/// Sets whether a worker accepts new sessions. Answered by `done`, like the above; false if there is no such worker.
struct worker_drain {
  worker_key key;
  bool drain;
  std::function<void(bool known)> done;
};

/// `open_duplex` or `open_chat` for the sending session, with a new engine session id.
struct engine_open {
  session_actor session;
  ticket_key ticket = 0; ///< ticket of the slot that it was granted
  conversation::command order;
};

/// Any other command from the session that owns the engine session.
struct engine_command {
  session_actor session;
  conversation::command order;
};

/// The holder of this ticket has died or moved: the worker ends its engine session there, then frees the slot.
struct slot_orphaned {
  queue_actor queue;
  ticket_key ticket = 0;
};

/// Tells a worker where to offer its slots, and its key there.
struct worker_start {
  queue_actor queue;
  worker_key key = 0;
};

/// Ends the worker as soon as it has no sessions; the gateways move theirs elsewhere.
struct worker_stop {};

/// The engine is loaded and accepts sessions.
struct engine_up {
  inference::engine_info info;
};

/// `latest_capacity` has a new report.
struct capacity_measured {};

/// The engine could not be loaded or has thrown: the worker ends.
struct engine_down {
  std::string reason;
};

/// The worker may report its load again.
struct report_due {};

// ---- between two nodes

/// Another machine may send null where there should be an actor.
template<class Member>
bool is_there(const Member& member) {
  if constexpr (caf::is_handle<Member>::value)
    return static_cast<bool>(member);
  else
    return true;
}

template<class... Members>
caf::error all_there(const Members&... members) {
  if ((is_there(members) && ...)) return caf::none;
  return caf::sec::invalid_argument;
}

/// A value of the engine, packed into one string of bytes.
template<class Inspector, class Value, class... Ts>
typename Inspector::result_type inspect_packed(Inspector& f, const char* name, Value& value, Ts&... others) {
  std::string bytes;
  if constexpr (Inspector::reads_state) bytes = pack(value);
  const auto load = [&]() -> caf::error {
    if (unpack(bytes, value)) return all_there(others...);
    return caf::sec::invalid_argument;
  };
  return f(caf::meta::type_name(name), others..., bytes, caf::meta::load_callback(load));
}

/// Members that need no check but that actors are there.
template<class Inspector, class... Ts>
typename Inspector::result_type inspect_there(Inspector& f, const char* name, Ts&... members) {
  const auto load = [&] { return all_there(members...); };
  return f(caf::meta::type_name(name), members..., caf::meta::load_callback(load));
}

// Serialization between nodes, in the form that CAF requires: `f` reads or writes the members. Each checks what it has read.

/// An event that makes no sense is a failure of its session's work.
template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, engine_event& of) {
  std::string bytes;
  if constexpr (Inspector::reads_state) bytes = pack(of.event);
  const auto load = [&]() -> caf::error {
    if (unpack(bytes, of.event)) return caf::none;
    auto failure = failure_instead(bytes);
    if (!failure) return caf::sec::invalid_argument;
    of.event = *std::move(failure);
    return caf::none;
  };
  return f(caf::meta::type_name("parley::engine_event"), bytes, caf::meta::load_callback(load));
}

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, engine_open& of) {
  return inspect_packed(f, "parley::engine_open", of.order, of.session, of.ticket);
}

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, engine_command& of) {
  return inspect_packed(f, "parley::engine_command", of.order, of.session);
}

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, slots_offered& of) {
  return inspect_packed(f, "parley::slots_offered", of.info, of.key);
}

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, capacity_report& of) {
  return inspect_packed(f, "parley::capacity_report", of.capacity, of.key);
}

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, open_denied& of) {
  return f(caf::meta::type_name("parley::open_denied"), of.session);
}

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, worker_leaves& of) {
  return f(caf::meta::type_name("parley::worker_leaves"), of.key);
}

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, orphan_closed& of) {
  return f(caf::meta::type_name("parley::orphan_closed"), of.key, of.ticket);
}

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, slot_orphaned& of) {
  return inspect_there(f, "parley::slot_orphaned", of.queue, of.ticket);
}

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, worker_start& of) {
  return inspect_there(f, "parley::worker_start", of.queue, of.key);
}

} // namespace parley::actors

// These never leave their process.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::client_frame)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::guest_said)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::client_binary)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::client_gone)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::link_offer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::close_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::queue_update)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::slot_granted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::slot_refused)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::slot_lost)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::session_fault)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::move_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::drain_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::timer_due)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::transcript_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::client_sound)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::slot_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::slot_cancelled)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::slot_accepted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::slot_freed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::slot_retyped)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::slot_impatient)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::affinity_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::trial_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::trial_over)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::trial_granted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::worker_joins)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::snapshot_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::worker_drain)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::worker_stop)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::engine_up)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::capacity_measured)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::report_due)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::engine_down)
