#pragma once

#include "protocol/json/document.hpp"
#include "protocol/openai/live/session_config.hpp"
#include "protocol/openai/shared/budget.hpp"
#include "protocol/openai/shared/field_set.hpp"

#include <cstdint>
#include <string>
#include <variant>

// The events that clients of OpenAI's Live API send. Views and values refer to the frame's document.
namespace parley::protocol::openai::live {

struct session_start {
  session_config config;
};
struct session_update {
  json::value session;
};
struct session_close {};
struct audio_append {
  borrowed_text audio; ///< base64
};
struct audio_mute {
  bool muted = false;
};

/// Text that the model shall know (instructions, thinking) or say (commentary).
struct context_append {
  enum class channel : std::uint8_t { instructions, thinking, commentary };
  channel to = channel::instructions;
  std::string content;
  std::string delegation_id{}; ///< what it belongs to; empty = to nothing
};

/// Something for the functions' side of the session: a result, and the wish that it be used.
struct response_item {
  item one;
};
struct response_create {};

using client_event = std::variant<session_start, session_update, session_close, audio_append, audio_mute,
                                  context_append, response_item, response_create>;

/// Reads one event. `sound` is charged for what is decoded here, which an append's sound is not.
result<client_event> read_client_event(json::value event, event_sound& sound);

} // namespace parley::protocol::openai::live
