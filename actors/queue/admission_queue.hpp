#pragma once

#include "actors/capacity/prefix_hash.hpp"
#include "actors/keys.hpp"
#include "actors/queue/eta_model.hpp"
#include "actors/queue/worker_selection.hpp"
#include "protocol/errors.hpp"
#include "protocol/events.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace parley::actors {

/// Section `queue` of the settings (docs/protocol.md 7).
struct queue_settings {
  std::size_t capacity = 1000;                                    ///< waiting tickets; 0 = no queue
  std::chrono::milliseconds no_worker = std::chrono::seconds(10); ///< how long clients wait without any worker
  double base_chat_s = 15; ///< expected session lengths until three have been measured
  double base_audio_s = 120;
  double base_video_s = 90;
};

/// How many sessions of one client may wait at a time; 0 = no limit.
struct waiting_limits {
  std::size_t per_address = 0;
  std::size_t per_key = 0;
};

/// Additional wishes of a session for its slot.
struct queue_wish {
  worker_key avoid = 0;                   ///< any worker but this one, without holding up those behind it; 0 = any
  bool patient = false;                   ///< the session has its own timeout for waiting without any worker
  std::optional<prefix_hash> prompt = {}; ///< its prompt: a worker that has it cached is preferred
  bool background = false;                ///< only a slot that nobody else wants, and only as long as nobody wants it
};

// ---- notices, in order

/// First notice to a ticket that has to wait: `session.queued`.
struct ticket_queued {
  ticket_key ticket;
  protocol::queue_position place;
};

/// `session.queue_update`.
struct position_changed {
  ticket_key ticket;
  protocol::queue_position place;
};

/// Grants this ticket a slot of `worker`. Call `accept` when the session has received it, or `free` if it has left.
struct ticket_granted {
  ticket_key ticket;
  worker_key worker;
};

/// The ticket leaves the queue: queue_full, worker_busy, service_unavailable or worker_connect_failed.
struct ticket_refused {
  ticket_key ticket;
  protocol::error_code code;
};

/// Somebody waits for the slot of this background ticket: its session is to end now.
struct ticket_recalled {
  ticket_key ticket;
};

using queue_event = std::variant<ticket_queued, position_changed, ticket_granted, ticket_refused, ticket_recalled>;
using queue_events = std::vector<queue_event>;

/// The queue of docs/protocol.md section 7: a FIFO of tickets, the ledger of the workers' slots, and the ETA. Pure:
/// time is an argument, and notices are returned. Taking and returning slots costs O(log n); reporting positions costs
/// one walk along the queue, at most ten times a second for updates. Not thread-safe.
///
/// Each slot is free, granted (on its way to a session) or taken. `free` returns it from either of the last two. No
/// other object counts slots: all others only know tickets.
///
/// Background tickets wait beside the queue without a word about their place. They get slots that are free while nobody
/// else waits, and are recalled as soon as somebody does.
class admission_queue {
public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit admission_queue(queue_settings settings);
  admission_queue(const admission_queue&) = delete;
  admission_queue& operator=(const admission_queue&) = delete;

  /// Requests a slot for a session. `ticket` must be new; `ticket_id` is what the client sees. `at_head`: the session
  /// had a slot before, and lost its worker or its process. It goes to the head of the queue, behind others that did,
  /// whatever the capacity (the session machine counts its attempts).
  queue_events enqueue(ticket_key ticket, std::string ticket_id, protocol::mode kind, bool at_head, time_point now,
                       queue_wish wanted = {});

  /// The client left or closed while it waited. Unknown and granted tickets are ignored.
  queue_events cancel(ticket_key ticket, time_point now);

  /// The session has received its grant: from now on, its time counts as conversation.
  void accept(ticket_key ticket, time_point now);

  /// The session of this ticket ended or never took its grant: the slot goes to the next in the queue. Unknown tickets
  /// are ignored.
  queue_events free(ticket_key ticket, time_point now);

  /// `payload.mode` chose another kind of conversation.
  void retype(ticket_key ticket, protocol::mode kind);

  /// The session with this slot is about to begin with this prompt. If its own worker does not have the prompt cached,
  /// it moves to one that does and is not much fuller; its old slot goes to the next in the queue. Returns its worker;
  /// none for a ticket without a slot.
  std::optional<worker_key> rebalance(ticket_key ticket, prefix_hash prompt, time_point now, queue_events& words);

  /// A worker has these prompts cached.
  void prompts_at(worker_key worker, std::vector<prefix_hash> prompts);

  /// A worker offers `slots` slots, or a different number than before. If more are in use, no session loses its slot.
  queue_events offer(worker_key worker, int slots, time_point now);

  /// The ticket that replaces one whose slot was on a lost worker.
  struct successor {
    ticket_key lost;
    ticket_key ticket; ///< the new ticket
    std::string ticket_id;
  };

  /// A worker is gone with all its slots. Tickets that held one are forgotten; their successors go to the head of the
  /// queue in this order, behind others that are there for the same reason, whatever its capacity. They keep the wishes of the tickets that they replace, and have their
  /// own timeouts.
  queue_events worker_down(worker_key worker, time_point now, std::vector<successor> successors = {});

  /// The session that waits with this ticket has no timeout of its own for waiting without any worker. Ignored for
  /// tickets that are not waiting.
  void make_impatient(ticket_key ticket, time_point now);

  /// No more grants: everybody in the queue is refused with service_unavailable, and so are newcomers.
  queue_events drain(time_point now);

  /// Reports position updates that are due, and checks the timeout for waiting without a worker.
  queue_events tick(time_point now);

  /// When `tick` has something to do next; none = never.
  std::optional<time_point> next_deadline() const;

  // ---- the ledger

  /// The worker of the slot that this ticket was granted; none while it waits, or is unknown.
  std::optional<worker_key> worker_of(ticket_key ticket) const;

  /// Tickets that hold a slot of that worker, the oldest first.
  std::vector<ticket_key> holders_of(worker_key worker) const;

  // ---- for GET /status and tests

  struct worker_view {
    worker_key worker;
    int slots;
    int busy;
  };
  std::vector<worker_view> workers() const;

  struct waiter_view {
    ticket_key ticket;
    std::string ticket_id;
    protocol::mode kind;
    double estimated_wait_s;
  };
  /// The waiting tickets, the next one first.
  std::vector<waiter_view> waiters(time_point now) const;

  struct conversation_view {
    worker_key worker;
    protocol::mode kind;
    double elapsed_s;
    double expected_s; ///< seconds that it will probably still take
  };
  /// The tickets that hold a slot, in no order.
  std::vector<conversation_view> conversations(time_point now) const;

  /// How long a chat session would wait that came now, in seconds.
  double expected_wait_s(time_point now) const;

  std::size_t capacity() const { return settings_.capacity; }
  std::size_t waiting() const { return line_.size(); }
  std::size_t waiting_in_background() const { return aside_.size(); }
  int free_slots() const;

private:
  struct waiter {
    ticket_key ticket;
    std::string ticket_id;
    protocol::mode kind;
    int told_position;
    time_point told_at;
    queue_wish wanted;
  };
  struct holder {
    worker_key worker;
    protocol::mode kind;
    bool accepted;
    time_point since;
    std::optional<prefix_hash> prompt; ///< the prompt of its session, if known
    bool background = false;
    bool recalled = false;
  };
  struct slots {
    int offered = 0;
    int busy = 0;
    std::vector<prefix_hash> prompts;
    int free() const { return offered > busy ? offered - busy : 0; }
  };
  using line = std::map<std::int64_t, waiter>;
  struct background_waiter {
    ticket_key ticket;
    protocol::mode kind;
  };

  std::optional<protocol::error_code> enqueue_aside(ticket_key ticket, protocol::mode kind, time_point now,
                                                    queue_events& words);
  void serve_aside(time_point now, queue_events& words);
  void refuse_aside(queue_events& words);
  void recall(queue_events& words);
  void serve(time_point now, queue_events& words);
  void grant(ticket_key ticket, protocol::mode kind, const queue_wish& wanted,
             std::map<worker_key, slots>::iterator worker, time_point now, queue_events& words);
  void tell_queued(const std::vector<std::int64_t>& orders, time_point now, queue_events& words);
  void refuse(protocol::error_code code, bool patient_ones_too, queue_events& words);
  void leave_line(line::iterator who);
  void positions_changed(time_point now);
  std::map<worker_key, slots>::iterator best_for(const queue_wish& wanted);
  std::vector<worker_candidate> candidates(std::optional<prefix_hash> prompt) const;
  slot_forecast forecast(time_point now) const;

  queue_settings settings_;
  conversation_lengths lengths_;
  line line_;                                                    ///< in order of service
  std::int64_t head_ = std::numeric_limits<std::int64_t>::min(); ///< of those who had a slot before
  std::deque<background_waiter> aside_;
  std::size_t held_in_background_ = 0; ///< slots
  std::int64_t tail_ = 0;
  std::unordered_map<ticket_key, std::int64_t> order_of_;
  std::unordered_map<ticket_key, holder> holders_;
  std::map<worker_key, slots> workers_;
  bool draining_ = false;
  std::optional<time_point> patience_ends_; ///< set while no worker is up
  std::optional<time_point> next_walk_;
  time_point last_walk_{};
};

} // namespace parley::actors
