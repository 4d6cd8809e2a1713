#pragma once

#include "actors/messages.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

// Where a session lives, as pure states and transitions: nothing here sends anything.
namespace parley::actors {

/// A worker's slot, from the grant on.
struct worker_slot {
  ticket_key ticket = 0;
  worker_actor worker;
  worker_key key = 0;
};

namespace lease {

/// It has no slot and requests none.
struct none {};

/// Waiting in the queue for a slot.
struct waiting {
  ticket_key ticket = 0;
};

/// It has a slot, but nothing is open there.
struct held {
  worker_slot slot;
};

/// The queue manager was asked which worker has the prompt cached; the session will open there.
struct placing {
  worker_slot slot;
};

/// Its engine session is open, or being opened.
struct open {
  worker_slot slot;
  conversation::session_id engine = 0;
};

/// The same, but it also waits in the queue for another worker.
struct moving {
  worker_slot slot;
  conversation::session_id engine = 0;
  ticket_key ticket = 0;
};

/// The worker turned out to be full: it is back at the head of the queue, and the session machine does not know.
struct reopening {
  ticket_key ticket = 0;
  bool replay = false; ///< it was replaying, and will do so again
};

/// Its engine session is being rebuilt from the replay buffer.
struct replaying {
  worker_slot slot;
  conversation::session_id engine = 0;
};

/// Its engine session is being closed.
struct closing {
  worker_slot slot;
  conversation::session_id engine = 0;
};

/// Its worker was lost or left, and the session machine has been told. When the machine requests a slot, it gets this
/// one, or keeps waiting with this ticket.
struct displaced {
  ticket_key ticket = 0;                ///< 0 = it is not waiting
  std::optional<worker_slot> slot = {}; ///< set if it has one already
};

} // namespace lease

using lease_state = std::variant<lease::none, lease::waiting, lease::held, lease::placing, lease::open, lease::moving,
                                 lease::reopening, lease::replaying, lease::closing, lease::displaced>;
inline constexpr std::size_t lease_states = std::variant_size_v<lease_state>;

/// What can happen to a lease. For each step there is a function below, which asserts that the step is allowed.
enum class lease_step : std::uint8_t {
  ask,          ///< the machine requests a slot
  grant,        ///< its ticket is granted a slot
  leave_line,   ///< it will get none, or no longer wants one
  place,        ///< the queue manager is asked for the best worker
  open,         ///< an engine session is opened
  replay,       ///< one is rebuilt from the replay buffer
  caught_up,    ///< the rebuilt session has reached the state of the lost one
  deny,         ///< the worker had no room
  move,         ///< another worker is wanted
  close,        ///< close the engine session
  engine_ended, ///< the engine session has ended
  lose,         ///< the worker is lost
  give_up,      ///< leave the worker, because nothing can be replayed
  release,      ///< return the slot
};
inline constexpr std::size_t lease_steps = 14;

/// Whether a step is allowed in a state, given by its index in the variant.
constexpr bool allowed(lease_step step, std::size_t state) {
  constexpr std::array<std::array<bool, lease_states>, lease_steps> table{{
      // none waiting held placing open moving reopening replaying closing displaced
      {1, 0, 0, 0, 0, 0, 0, 0, 0, 1}, // ask
      {0, 1, 0, 1, 0, 1, 1, 0, 0, 0}, // grant
      {0, 1, 0, 0, 0, 1, 1, 0, 0, 0}, // leave_line
      {0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, // place
      {0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, // open
      {0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, // replay
      {0, 0, 0, 0, 0, 0, 0, 1, 0, 0}, // caught_up
      {0, 0, 0, 0, 1, 0, 0, 1, 0, 0}, // deny
      {0, 0, 0, 0, 1, 0, 0, 0, 0, 0}, // move
      {0, 0, 0, 0, 1, 0, 0, 1, 0, 0}, // close
      {0, 0, 0, 0, 1, 0, 0, 0, 1, 0}, // engine_ended
      {0, 0, 1, 1, 1, 1, 0, 1, 1, 0}, // lose
      {0, 0, 0, 0, 0, 0, 0, 1, 0, 0}, // give_up
      {0, 0, 1, 1, 0, 0, 0, 0, 0, 1}, // release
  }};
  return table[static_cast<std::size_t>(step)][state];
}

/// Its slot; null if it has none.
const worker_slot* slot_of(const lease_state& in);

/// The engine session in use; 0 = none.
conversation::session_id engine_of(const lease_state& in);

/// The ticket with which it waits in the queue; 0 = none.
ticket_key ticket_of(const lease_state& in);

// ---- the steps

/// `fresh`: the ticket with which it waits now, unless it was displaced with a slot or a ticket.
lease_state asked(lease_state in, ticket_key fresh);

/// Grants a slot for `ticket_of`, or for the ticket that is being placed. If it was moving, the caller leaves the old
/// slot and informs the machine.
lease_state granted(const lease_state& in, worker_slot slot);

/// The queue refused it, or it left the queue. If it was moving, it stays where it is.
lease_state out_of_line(lease_state in);

lease_state being_placed(lease_state in);
lease_state opened(lease_state in, conversation::session_id engine);
lease_state being_replayed(lease_state in, conversation::session_id engine);
lease_state caught_up(lease_state in);
lease_state denied(const lease_state& in, ticket_key fresh);
lease_state being_moved(lease_state in, ticket_key fresh);
lease_state being_closed(lease_state in);
lease_state engine_ended(lease_state in);

/// `next`: the ticket with which it waits for another slot; 0 = it does not wait. A moving lease keeps its ticket.
lease_state lost(lease_state in, ticket_key next);

/// It left its worker because nothing can be replayed there.
lease_state given_up(const lease_state& in);

/// It no longer has a slot and does not wait for one.
lease_state released(const lease_state& in);

} // namespace parley::actors
