#pragma once

#include <cstdint>

// What an answer consists of, how it ends, and why it can fail.
namespace parley::conversation {

/// The contents of a delta. `listen`: the model keeps listening.
enum class output_kind : std::uint8_t { listen, text, audio };

/// Why the answer to a chat turn ended: the model was done, a limit or the context was reached, or it was cancelled.
enum class finish_reason : std::uint8_t { turn_end, length, cancelled };

/// Why an open, a unit or a turn failed (docs/protocol.md 5).
enum class failure_kind : std::uint8_t {
  invalid,      ///< the client's fault: voice, prompt or picture
  context_full, ///< it does not fit into the context
  inference     ///< the server's fault
};

} // namespace parley::conversation
