#pragma once

#include "actors/journal.hpp"
#include "actors/messages.hpp"
#include "actors/session_meter.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace parley::actors {

/// What a session's machine has to learn of its place. `none`: nothing has changed for it.
/// `given_up`: what was under way was lost with two workers, and is not sent to a third.
enum class tidings { none, granted, refused, worker_lost, given_up, restored, closed };

/// Where a session lives: the slot that it asks for and holds, its engine session on that slot's worker, and the journal by
/// which it is taken up on another one when its own is lost, drained, or left by an operator's wish; the machine learns of
/// a lost worker in each case. Speaks with the queue manager and the workers in the name of its session's actor, and on
/// its thread alone.
class tenancy {
public:
  struct terms {
    std::atomic<std::uint64_t>& last_key; ///< of tickets and engine sessions, in the whole house
    bool movable;                         ///< it may go on elsewhere
    std::string address;                  ///< of the client, and the name of its API key (`slot_wanted`)
    std::string key;
  };

  /// `tenant` owns it. `counted` outlives it.
  tenancy(session_actor::base& tenant, queue_actor queue, session_meter& counted, journal kept, terms under);

  /// `call` is called on another thread when `woken` is due.
  void wake_with(std::function<void()> call) { journal_.wake_with(std::move(call)); }

  /// Lets go of all others. Its last call.
  void leave();

  // ---- what the machine wants done

  /// A slot. `running`: for a session that has begun to talk and was lost.
  tidings ask(protocol::mode kind, bool at_head, bool running);
  void cancel();
  void retype(protocol::mode kind);
  void release();
  void open(const protocol::open_engine& order);
  void order(inference::command&& command);
  tidings restore();
  tidings close();

  inference::session_id engine_session() const { return engine_session_; }

  // ---- what comes in

  tidings take(const slot_granted& grant);
  tidings take(const slot_refused& refusal);
  tidings take(const open_denied& denial);
  tidings take(const trial_granted& grant);

  /// Whether this is about the engine session in use; what it chose is then written down.
  bool concerns(const inference::event& event);
  bool restoring() const { return restoring_; }
  /// Of what concerns a session that is being restored.
  tidings take_restored(const inference::event& event);
  /// The engine session in use is no more.
  void engine_ended() { engine_session_ = 0; }

  /// To another worker as soon as one has room, if it can be moved now.
  void move();
  void stay();

  tidings peer_gone(const caf::down_msg& down);
  tidings woken();

  /// The ticket that `queue_told` is about.
  bool waits_for(ticket_key ticket) const { return asked_ && asked_->ticket == ticket; }

private:
  /// A slot of a worker, from the grant on.
  struct slot {
    ticket_key ticket;
    worker_actor worker;
    worker_key key;
  };

  /// Why it stands in line.
  enum class errand {
    place,  ///< the machine wants it
    move,   ///< for another worker than the present one
    reopen, ///< its worker denied the open
  };
  struct request {
    ticket_key ticket;
    errand why;
  };

  bool on(errand why) const { return asked_ && asked_->why == why; }
  bool can_move() const { return movable_ && journal_.whole(); }
  void stand_in_line(errand why, bool at_head, bool running, worker_key avoid = 0);
  void hold(slot fresh);
  void drop_slot();
  tidings take_place(const slot_granted& grant);
  tidings change_over(slot fresh);
  void open_here();
  void dispatch(inference::command&& command);
  void want_trial();
  void end_trial();
  bool count_loss();
  void forget_work();
  tidings rebuild();
  tidings rebuild_further();
  tidings give_up_moving();

  session_actor::base& self_;
  queue_actor queue_;
  session_meter& counted_;
  journal journal_;
  terms terms_;
  protocol::mode kind_ = protocol::mode::video;
  std::optional<request> asked_; ///< neither granted nor refused yet
  std::optional<slot> slot_;
  std::optional<slot> next_slot_;                    ///< of a move, while the machine learns of it
  ticket_key lost_ = 0;                              ///< of the last slot whose worker was lost
  inference::session_id engine_session_ = 0;         ///< the one in use; 0 = none
  std::optional<protocol::open_engine> opened_with_; ///< to open it anew on another worker
  std::optional<prompt_key> prompt_;                 ///< of `opened_with_`
  bool settling_ = false;  ///< it has asked whether another worker has its prompt, and opens then
  bool restoring_ = false; ///< the journal is being replayed
  bool exposed_ = false;   ///< the worker has work of the session that it has not answered
  int work_losses_ = 0;    ///< workers that died with the work that is under way
  int replay_losses_ = 0;  ///< workers that died while the journal was replayed, since the last time that it was
  enum class trial { none, wanted, granted } trial_ = trial::none; ///< of work that was lost before
  std::vector<inference::command> held_;                           ///< until the trial is granted
  bool movable_; ///< it may go on elsewhere, and no attempt has failed
};

} // namespace parley::actors
