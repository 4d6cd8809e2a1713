#pragma once

#include "actors/deadline_timer.hpp"
#include "actors/messages.hpp"
#include "actors/meters/meters.hpp"
#include "actors/queue/admission_queue.hpp"
#include "actors/queue/server_snapshot.hpp"
#include "actors/queue/trial_queue.hpp"
#include "actors/queue/worker_table.hpp"
#include "actors/session_registry.hpp"
#include "protocol/ids.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace parley::actors {

/// The actor around the admission queue, which is the ledger of slots: assigns tickets, forwards the queue's notices to
/// sessions, and monitors sessions and workers. A session that dies while it waits leaves the queue. If it dies with a
/// slot, its worker frees the slot once the engine has closed what was open. The death of a worker is handled here and
/// nowhere else: its sessions go to the head of the queue, and each receives `slot_lost`. Keeps the worker table up to
/// date.
///
/// A failure in the work for one session ends that session (`session_fault`) and withdraws its ticket; all others
/// continue.
class queue_manager : public queue_actor::base {
public:
  /// What the actor uses but does not own. All of it must outlive the actor.
  struct surroundings {
    worker_table& board;
    const session_registry& sessions;
    meters& counted;
    std::atomic<std::uint64_t>& last_key; ///< last ticket that was assigned
  };

  queue_manager(caf::actor_config& config, queue_settings settings, waiting_limits waiting, surroundings around);

  const char* name() const override { return "queue_manager"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  /// The owner of a ticket. The admission queue keeps the ticket's state.
  struct party {
    session_actor session; ///< null = it has died, and its worker will free the slot
    admission_queue::time_point since;
    std::string address; ///< address of the client, and name of its API key
    std::string key;
    bool background = false;
  };

  /// Carries out a session's request about its ticket.
  template<class Work>
  void serve(ticket_key ticket, Work work);
  template<class Work>
  void isolate(ticket_key ticket, const session_actor& session, Work work);
  void abandon(ticket_key ticket, const session_actor& session);

  /// Forwards the queue's notices and sets the timer again.
  void deliver(queue_events&& words);
  void send_event(ticket_queued& word);
  void send_event(position_changed& word);
  void send_event(ticket_granted& word);
  void send_event(ticket_refused& word);
  void send_event(ticket_recalled& word);

  party& party_of(ticket_key ticket);
  void forget(ticket_key ticket);
  void enqueue(slot_request& message);
  void cancel(ticket_key ticket);
  void free(ticket_key ticket);
  bool waits_too_often(const slot_request& message) const;
  void rebalance(const affinity_request& message);
  void try_again(const trial_request& message);
  void end_trial(ticket_key ticket);
  void session_gone(const caf::actor_addr& who);

  bool is_from(worker_key key);
  void join(const worker_joins& message);
  void offer(const slots_offered& message);
  void note(capacity_report& message);
  void drain(const worker_drain& message);
  void take_no_more(worker_key key);
  void take_again(worker_key key);
  void ask_to_move(worker_key from, bool go);
  void worker_gone(worker_key key, const caf::error& why);

  server_snapshot snapshot() const;

  admission_queue line_;
  const waiting_limits waiting_limits_;
  surroundings around_;
  protocol::random_source random_;
  deadline_timer deadline_timer_;
  std::map<ticket_key, party> parties_; ///< in the order of the tickets
  trial_queue trials_;
};

} // namespace parley::actors
