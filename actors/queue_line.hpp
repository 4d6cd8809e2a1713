#pragma once

#include "actors/placement.hpp"
#include "actors/prompt_key.hpp"
#include "actors/wait_model.hpp"
#include "protocol/errors.hpp"
#include "protocol/events.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace parley::actors {

/// Names of the queue manager's own; never reused.
using worker_key = std::uint64_t;
using ticket_key = std::uint64_t;

/// Section `queue` of the settings (PROTOCOL.md 7).
struct queue_settings {
  std::size_t capacity = 1000;                                    ///< waiting tickets; 0 = no queue
  std::chrono::milliseconds no_worker = std::chrono::seconds(10); ///< how long clients wait without any worker
  double base_chat_s = 15; ///< expected session lengths until three were measured
  double base_audio_s = 120;
  double base_video_s = 90;
};

/// How many of one client may wait at a time; 0 = any number.
struct waiting_limits {
  std::size_t per_address = 0;
  std::size_t per_key = 0;
};

/// What a session that is under way asks for besides.
struct queue_wish {
  worker_key avoid = 0; ///< it wants a slot elsewhere; who stands behind it is not held up by that. 0 = any will do
  bool patient = false; ///< it has a clock of its own for how long it waits without any worker
  std::optional<prompt_key> prompt = {}; ///< that it begins with: it would rather go where that is at hand
};

// ---- what is to be told, in order ---------------------------------------------------------------------------

/// First word to a ticket that has to wait: `session.queued`.
struct told_queued {
  ticket_key ticket;
  protocol::queue_place place;
};

/// `session.queue_update`.
struct told_place {
  ticket_key ticket;
  protocol::queue_place place;
};

/// A slot of `worker` is this ticket's. The session answers with `accept` (it is there) or `free` (it went away
/// meanwhile).
struct told_granted {
  ticket_key ticket;
  worker_key worker;
};

/// The ticket is gone from the line: queue_full, worker_busy, service_unavailable or worker_connect_failed.
struct told_refused {
  ticket_key ticket;
  protocol::error_code code;
};

using queue_word = std::variant<told_queued, told_place, told_granted, told_refused>;
using queue_words = std::vector<queue_word>;

/// The one line of PROTOCOL.md section 7: FIFO of tickets, ledger of the workers' slots, ETA. Pure: time is an
/// argument, what is to be told is returned. Taking and giving slots costs O(log n); whoever has to be told a place
/// costs one walk along the line, at most ten times a second for the updates. Not thread-safe.
///
/// Each slot is free, granted (on its way to a session) or taken. `free` returns it from both of the latter. This is the only ledger of slots:
/// others know tickets.
class queue_line {
public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit queue_line(queue_settings settings);
  queue_line(const queue_line&) = delete;
  queue_line& operator=(const queue_line&) = delete;

  /// A session asks for a slot. `ticket` is new; `ticket_id` is what the client sees. `at_head`: it lost its worker, so
  /// it is first in line and no capacity holds it off (the session machine counts its tries).
  queue_words enqueue(ticket_key ticket, std::string ticket_id, protocol::mode kind, bool at_head, time_point now,
                      queue_wish wanted = {});

  /// The client is gone or has closed while it waited. Unknown and granted tickets are left alone.
  queue_words cancel(ticket_key ticket, time_point now);

  /// The session took the grant: from now on its time counts as a conversation.
  void accept(ticket_key ticket, time_point now);

  /// The session of this ticket is over or never took its grant: the slot goes to the next in line. Unknown tickets are
  /// left alone.
  queue_words free(ticket_key ticket, time_point now);

  /// `payload.mode` changed what kind of conversation this is.
  void retype(ticket_key ticket, protocol::mode kind);

  /// Whoever holds a slot is about to begin, with this prompt. It goes to a worker that has the prompt and is not much
  /// fuller, if its own has it not; what it leaves goes to the next in line. Gives back its worker; none for a ticket
  /// without a slot.
  std::optional<worker_key> settle(ticket_key ticket, prompt_key prompt, time_point now, queue_words& words);

  /// A worker has these prompts at hand.
  void prompts_at(worker_key worker, std::vector<prompt_key> prompts);

  /// A worker offers `slots` slots, or another number than before. Fewer than are busy takes none away from anybody.
  queue_words offer(worker_key worker, int slots, time_point now);

  /// Who stands in line instead of one that held a slot of a lost worker.
  struct successor {
    ticket_key lost;
    ticket_key ticket; ///< new
    std::string ticket_id;
  };

  /// A worker is gone with all its slots. Tickets that held one are forgotten, and their successors are first in line, in this order; whatever the
  /// capacity. They want what those wanted, and are patient.
  queue_words worker_down(worker_key worker, time_point now, std::vector<successor> successors = {});

  /// Whoever waits with this ticket has no clock of its own for how long it waits without any worker. Other tickets are left alone.
  void make_impatient(ticket_key ticket, time_point now);

  /// No more grants: everybody waiting is refused with service_unavailable, and so is whoever comes.
  queue_words drain(time_point now);

  /// Place updates that are due, and the end of patience without a worker.
  queue_words tick(time_point now);

  /// When `tick` has something to do next; none = never.
  std::optional<time_point> next_deadline() const;

  // ---- the ledger -------------------------------------------------------------------------------------------

  /// The worker of the slot that this ticket was granted; none while it waits, or is unknown.
  std::optional<worker_key> worker_of(ticket_key ticket) const;

  /// Those that hold a slot of that worker, the oldest first.
  std::vector<ticket_key> holders_of(worker_key worker) const;

  // ---- for GET /status and tests ----------------------------------------------------------------------------

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
  /// Who waits, the next one first.
  std::vector<waiter_view> waiters(time_point now) const;

  struct conversation_view {
    worker_key worker;
    protocol::mode kind;
    double elapsed_s;
    double expected_s; ///< that it will still take
  };
  /// Who holds a slot, in no order.
  std::vector<conversation_view> conversations(time_point now) const;

  std::size_t capacity() const { return settings_.capacity; }
  std::size_t waiting() const { return line_.size(); }
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
    std::optional<prompt_key> prompt; ///< that it began with, if that is known
  };
  struct slots {
    int offered = 0;
    int busy = 0;
    std::vector<prompt_key> prompts;
    int free() const { return offered > busy ? offered - busy : 0; }
  };
  using line = std::map<std::int64_t, waiter>;

  void serve(time_point now, queue_words& words);
  void grant(ticket_key ticket, protocol::mode kind, const queue_wish& wanted,
             std::map<worker_key, slots>::iterator worker, time_point now, queue_words& words);
  void tell_queued(const std::vector<std::int64_t>& orders, time_point now, queue_words& words);
  void refuse(protocol::error_code code, bool patient_ones_too, queue_words& words);
  void leave_line(line::iterator who);
  void places_changed(time_point now);
  std::map<worker_key, slots>::iterator best_for(const queue_wish& wanted);
  std::vector<housing> houses(std::optional<prompt_key> prompt) const;
  slot_forecast forecast(time_point now) const;

  queue_settings settings_;
  conversation_lengths lengths_;
  line line_; ///< by order of service
  std::int64_t tail_ = 0;
  std::int64_t head_ = -1;
  std::unordered_map<ticket_key, std::int64_t> order_of_;
  std::unordered_map<ticket_key, holder> holders_;
  std::map<worker_key, slots> workers_;
  bool draining_ = false;
  std::optional<time_point> patience_ends_; ///< no worker is up
  std::optional<time_point> next_walk_;
  time_point last_walk_{};
};

} // namespace parley::actors
