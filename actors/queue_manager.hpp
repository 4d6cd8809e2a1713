#pragma once

#include "actors/alarm.hpp"
#include "actors/messages.hpp"
#include "actors/meters.hpp"
#include "actors/queue_line.hpp"
#include "actors/session_registry.hpp"
#include "actors/trial_queue.hpp"
#include "actors/worker_board.hpp"
#include "protocol/ids.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace parley::actors {

/// The shell around the queue line: names tickets, tells sessions what the line says, and learns from monitors who is
/// gone. A session that dies while it waits leaves the line; one that dies with a slot has it freed by its worker, when
/// the engine has closed what was open. Writes what it learns of workers on the board.
class queue_manager : public queue_actor::base {
public:
  /// The board, the registry and the meters outlive the actor.
  queue_manager(caf::actor_config& config, queue_settings settings, waiting_limits waiting, worker_board& board,
                const session_registry& sessions, meters& counted);

  const char* name() const override { return "queue_manager"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  struct holder {
    session_actor session;
    std::optional<worker_key> worker; ///< of the slot that it was granted; none = it waits
    queue_line::time_point since;
    std::string address; ///< of the client, and the name of its API key
    std::string key;
  };

  /// Passes on what the line says and re-arms the timer.
  void tell(queue_words&& words);
  void say(told_queued& word);
  void say(told_place& word);
  void say(told_granted& word);
  void say(told_refused& word);

  holder* holder_of(ticket_key ticket);
  void forget(ticket_key ticket);
  void enqueue(slot_wanted& message);
  bool waits_too_often(const slot_wanted& message) const;
  void join(const worker_joins& message);
  void offer(const slots_offered& message);
  void settle(const place_wanted& message);
  void try_again(const trial_wanted& message);
  void end_trial(ticket_key ticket);
  void note(load_reported& message);
  std::string node_of(worker_key key) const;
  void gone(const caf::down_msg& down);
  void lose_slots(worker_key key);
  void worker_gone(worker_key key, const caf::error& why);
  void drain(const worker_drain& message);
  void take_no_more(worker_key key, bool drain);
  void clear_draining_ones();
  void report(const status_request& request);
  void report(const metrics_request& request);

  queue_line line_;
  const waiting_limits waiting_limits_;
  worker_board& board_;
  const session_registry& sessions_;
  meters& meters_;
  protocol::random_source random_;
  alarm alarm_;
  std::map<ticket_key, holder> holders_; ///< in the order of the tickets
  std::map<worker_key, worker_actor> workers_;
  std::map<worker_key, worker_load> loads_; ///< as they were told last
  trial_queue trials_;
  std::set<worker_key> draining_;
  std::set<worker_key> leaving_;
};

} // namespace parley::actors
