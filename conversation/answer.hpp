#pragma once

#include <cstdint>

// What an answer is, how it ends, and what can keep it from being given.
namespace parley::conversation {

/// What one delta brings. `listen`: the model keeps listening.
enum class output_kind : std::uint8_t { listen, text, audio };

/// Why an answer to a chat turn ended: the model was done, it reached its limit or a full context, it was cancelled.
enum class finish_reason : std::uint8_t { turn_end, length, cancelled };

/// Why an open, a unit or a turn came to nothing (docs/protocol.md 5).
enum class failure_kind : std::uint8_t {
  invalid,      ///< the client's fault: voice, prompt or picture
  context_full, ///< it does not fit into the context
  inference     ///< ours
};

} // namespace parley::conversation
