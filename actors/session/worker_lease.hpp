#pragma once

#include "actors/messages.hpp"
#include "actors/replay/replay_buffer.hpp"
#include "actors/session/lease_state.hpp"
#include "actors/session/session_meter.hpp"
#include "actors/session/work_trial.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace parley::actors {

/// What a session's machine has to learn about its worker. `none`: nothing has changed for it. `given_up`: the work in
/// progress was lost with two workers, and is not sent to a third.
enum class lease_event { none, granted, refused, worker_lost, given_up, restored, closed };

/// Where a session lives: the slot that it requests and holds, its engine session on that slot's worker, and the
/// replay buffer with which another worker takes over when its own is lost or drained, or when an operator moves the session;
/// to the machine, each of these is a lost worker. Talks to the queue manager and the workers on behalf of its
/// session's actor, on that actor's thread only. `lease_state` defines which steps are allowed.
///
/// Only the queue manager monitors workers. When one is lost, it puts the worker's sessions at the head of the queue
/// and sends each of them `slot_lost`. A grant may follow at once; the replay buffer is then replayed there.
class worker_lease {
public:
  struct terms {
    std::atomic<std::uint64_t>& last_key; ///< for tickets and engine sessions, in the whole server
    bool movable;                         ///< the session may move to another worker
    std::string address;                  ///< address of the client, and name of its API key (`slot_request`)
    std::string key;
    bool background = false; ///< its slot is one that nobody else wants
  };

  /// `tenant` owns it. `counted` must outlive it.
  worker_lease(session_actor::base& tenant, queue_actor queue, session_meter& counted, std::size_t most_replay_bytes,
               terms under);

  /// For a session that an earlier process had, before any other call: it lost its worker.
  void take_over(replay_buffer kept, protocol::open_engine opened_with);

  /// Whether the session can continue on another worker.
  bool can_move() const { return movable_ && replay_ && replay_->whole(); }

  /// Releases every reference. Must be the last call.
  void leave();

  // ---- requests from the session machine

  /// Requests a slot. `running`: the session is ACTIVE and lost its worker.
  lease_event ask(protocol::mode kind, bool at_head, bool running);
  void cancel();
  void retype(protocol::mode kind);
  void release();
  void open(const protocol::open_engine& order);
  void order(conversation::command command); ///< to the engine session in use, whatever session it names
  lease_event restore();
  lease_event close();

  conversation::session_id engine_session() const { return engine_of(state_); }

  /// Call when everything that the machine wanted is done: returns a slot or ticket that came with the loss of a
  /// worker, if the machine did not request one.
  void decline_unasked();

  // ---- incoming messages

  lease_event take(const slot_granted& grant);
  lease_event take(const slot_refused& refusal);
  lease_event take(const slot_lost& news);
  lease_event take(const open_denied& denial);
  lease_event take(const trial_granted& grant);

  /// Whether what this actor says about the engine session counts: it is the worker of the slot, or of this process.
  bool heeds(const caf::strong_actor_ptr& sender) const;

  /// Whether this concerns the engine session in use; if so, its choices are recorded. An answer without an end becomes a
  /// failure.
  bool concerns(conversation::event& event);
  bool restoring() const { return in<lease::replaying>(); }
  /// Takes an event of a session that is being restored.
  lease_event take_restored(const conversation::event& event);
  /// The engine session in use has ended.
  void engine_ended();

  /// Moves to another worker as soon as one has room, if the session can be moved now.
  void move();
  void stay();

  /// The queue manager has ended, or after that, the worker.
  lease_event peer_gone(const caf::down_msg& down);

  /// Whether `queue_update` for this ticket concerns the session.
  bool waits_for(ticket_key ticket) const { return ticket != 0 && ticket_of(state_) == ticket; }

private:
  template<class State>
  bool in() const {
    return std::holds_alternative<State>(state_);
  }
  const worker_slot& slot() const;
  template<class Message>
  void tell_queue(Message&& message) {
    if (queue_) self_.send(queue_, std::forward<Message>(message));
  }

  ticket_key stand_in_line(bool at_head, bool running, worker_key avoid = 0);
  lease_event lose(ticket_key next, bool shut_down);
  void leave_slot();
  void open_here();
  void dispatch(conversation::command&& command);
  void want_trial();
  void end_trial();
  lease_event rebuild();
  lease_event rebuild_further();
  lease_event give_up_moving();

  session_actor::base& self_;
  queue_actor queue_; ///< null = it has ended
  session_meter& counted_;
  std::size_t most_replay_bytes_;
  std::unique_ptr<replay_buffer> replay_; ///< null until an engine is asked for something
  terms terms_;
  protocol::mode kind_ = protocol::mode::video;
  lease_state state_;
  std::optional<protocol::open_engine> opened_with_; ///< the command that opens it again on another worker
  std::optional<prefix_hash> prompt_;                ///< the prompt of `opened_with_`
  work_trial trial_;
  bool movable_; ///< the session may move to another worker, and no attempt has failed
};

} // namespace parley::actors
