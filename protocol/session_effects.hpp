#pragma once

#include "protocol/events.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// What the session machine wants done, in order. The session actor carries it out and decides nothing.
namespace parley::protocol {

/// Encode and queue one event.
struct send {
  server_event event;
  dialect spoken = dialect::undecided; ///< at this moment
  std::string_view session_id;         ///< empty before `session.created`; points into the machine
  std::uint64_t event_id = 0;          ///< in a session that can be taken up again: from 1 on; 0 = not numbered
};

/// Queue the events behind this number again, as they were sent, on the connection that has just come.
struct send_again {
  std::uint64_t after = 0;
};

/// The last effect that concerns the socket: close frame after what is queued.
struct close_link {
  std::uint16_t code = 1000;
  std::string reason; ///< for the close frame, plain words
};

/// Ask the queue for a slot. Answered by on_queued and on_queue_update, then on_granted or on_refused.
struct enqueue {
  mode kind = mode::video;
  bool at_head = false; ///< its worker was lost: first in line, whatever the capacity
};

/// Take the request for a slot back. A grant that is already on its way is answered by `release_worker`.
struct cancel_ticket {};

/// `payload.mode` chose another mode than the one that was enqueued: the ETA model counts this session as `kind` from
/// now on.
struct retype {
  mode kind = mode::video;
};

/// The slot is free: exactly once for every grant, except when the worker was lost. Comes after the engine confirmed
/// the end.
struct release_worker {};

/// Make an engine session: open_duplex, or open_chat if `kind` is chat. Answered by on_engine_opened or
/// on_engine_failed.
struct open_engine {
  mode kind = mode::video;
  std::shared_ptr<const init_event> init; ///< what the client left open is filled in from the settings
};

/// One second. Answered by on_step_report until `last`, or on_engine_failed.
struct submit_unit {
  std::uint64_t unit = 0;
  pcm samples; ///< exactly 16 000
  std::vector<image_file> frames;
  int max_slice_nums = 1;
  bool force_listen = false;
};

/// Stop the running step at the next token; it answers `listen`.
struct cut_step {};

/// One chat turn. Answered by on_turn_report and one on_turn_done, or on_engine_failed.
struct submit_turn {
  std::uint64_t turn = 0;
  std::shared_ptr<const chat_append_event> request;
};

/// Stop the running turn; it answers on_turn_done with `cancelled`.
struct cancel_turn {};

/// A new worker was granted to an active session: open an engine session there and replay the journal, then call
/// on_restored. The unit or turn that was running is submitted again after that; of a turn only what has not been
/// reported yet is reported then.
struct restore_session {};

/// End the engine session. Always answered by on_engine_closed, also when its open came to nothing meanwhile.
struct close_engine {};

using effect = std::variant<send, send_again, close_link, enqueue, cancel_ticket, retype, release_worker, open_engine,
                            submit_unit, cut_step, submit_turn, cancel_turn, restore_session, close_engine>;
using effects = std::vector<effect>;

} // namespace parley::protocol
