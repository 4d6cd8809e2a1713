#pragma once

#include "conversation/engine.hpp"
#include "protocol/events.hpp"
#include "protocol/transcript.hpp"

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
  dialect spoken = dialect::undecided; ///< the current dialect
  std::string_view session_id;         ///< empty before `session.created`; points into the machine
  std::uint64_t event_id = 0;          ///< in a session that can be resumed, from 1 on; 0 = not numbered
};

/// Queue all events after this number again on the new connection, exactly as they were sent.
struct send_again {
  std::uint64_t after = 0;
};

/// The last effect on the socket: a close frame after everything that is queued.
struct close_link {
  std::uint16_t code = 1000;
  std::string reason; ///< for the close frame, in plain words
};

/// Ask the queue for a slot. Answered by on_queued and on_queue_update, then on_granted or on_refused.
struct enqueue {
  mode kind = mode::video;
  bool at_head = false; ///< the session lost its worker: first in line, whatever the capacity
};

/// Withdraw the request for a slot. If a grant is already on its way, `release_worker` answers it.
struct cancel_ticket {};

/// `payload.mode` chose a different mode than was enqueued: from now on, the ETA model counts this session as `kind`.
struct retype {
  mode kind = mode::video;
};

/// The slot is free. Sent exactly once for every grant, unless the worker was lost, after the engine has confirmed the
/// end.
struct release_worker {};

/// Create an engine session. Answered by `opened` or `failed`.
struct open_engine {
  mode kind = mode::video;
  conversation::command order; ///< open_duplex, or open_chat if `kind` is chat
};

// Commands for the engine session. Its id is not known here: `session` stays 0.
using conversation::cancel_turn;
using conversation::cut;
using conversation::submit_turn;
using conversation::submit_unit;

/// A new worker was granted to an active session: open an engine session there, replay the journal, then call
/// on_restored. The running unit or turn is then submitted again; for a turn, only what has not been reported yet is
/// reported.
struct restore_session {};

/// End the engine session. Always answered by on_engine_closed, even if its open has failed meanwhile.
struct close_engine {};

/// Have a turn of the user written down in the background. Answered by on_transcript.
struct transcribe_turn {
  transcript_request what;
};

using effect = std::variant<send, send_again, close_link, enqueue, cancel_ticket, retype, release_worker, open_engine,
                            submit_unit, cut, submit_turn, cancel_turn, restore_session, close_engine, transcribe_turn>;
using effects = std::vector<effect>;

} // namespace parley::protocol
