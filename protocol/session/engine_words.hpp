#pragma once

#include "conversation/engine.hpp"
#include "protocol/events.hpp"

// Where the wire and the engine do not use the same words.
namespace parley::protocol {

/// The command for the engine session that an init asks for: open_duplex, or open_chat if `kind` is chat.
conversation::command opening(mode kind, const init_event& init);

/// What a step cost, as events tell it (docs/protocol.md 4.1): what it did not have (speech, pictures, a sliding window)
/// stays unset.
metrics wire_metrics(const conversation::step_metrics& of);

} // namespace parley::protocol
