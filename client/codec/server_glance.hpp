#pragma once

#include "conversation/tools.hpp"
#include "conversation/usage.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Server events as clients read them: at a glance, or in full.
namespace parley::client {

/// What an event means, whatever the dialect calls it (docs/protocol.md 2 and 4).
enum class server_event_type : std::uint8_t {
  queued,
  queue_update,
  queue_done,
  created,
  resumed,
  listen,
  spoken, ///< text, audio or both
  tool_call,
  tool_call_delta,
  response_done,
  go_away,
  closed,
  error,
  other,
};

/// Looks it up by the event's name on the wire.
server_event_type server_event_type_of(std::string_view name);

/// What a load generator counts of a server event in either dialect. Read in one pass, without a DOM and without
/// decoding sound. Members that the event lacks keep their defaults.
struct server_glance {
  server_event_type type = server_event_type::other;
  bool text = false;             ///< whether it contains text
  std::size_t audio_samples = 0; ///< 24 kHz
  bool answers_unit = false;     ///< the last event of a step (docs/protocol.md 6.2)
  bool end_of_turn = false;
  std::int64_t input = 0;         ///< ordinal of the answered append, from 1; 0 in the legacy dialect
  std::int64_t dropped_units = 0; ///< total so far
  std::int64_t event_id = 0;      ///< number of an event that can be resent, from 1 (docs/protocol.md 14)
  std::string reason;             ///< for response.done, session.go_away and session.closed
  std::string error_code;
  std::string session_id, resume_token; ///< for session.created and session.resumed
  double resume_seconds = 0;            ///< for session.created
  std::int64_t inputs = 0;              ///< for session.resumed: how many appends have arrived
  std::int64_t resent = 0;              ///< for session.resumed: how many events follow again
  std::int64_t retry_after_ms = 0;      ///< for session.go_away; 0 = not said
};

/// The frame must be valid UTF-8, as the WebSocket layer ensures. None if it is no JSON object with a string `type`.
std::optional<server_glance> glance(std::string_view frame);

/// A server event in either dialect, in full. Members that the event lacks keep their defaults.
struct server_message {
  server_event_type type = server_event_type::other;
  std::string type_name;
  std::string session_id;
  std::string response_id;
  std::string text;
  std::vector<float> audio;  ///< 24 kHz; also empty if the value is not sound
  bool answers_unit = false; ///< the last event of a step, so the unit is answered (docs/protocol.md 6.2)
  bool end_of_turn = false;
  std::int64_t input = 0; ///< ordinal of the append that completed the unit, from 1; 0 in the legacy dialect
  std::optional<int> kv_cache_length;
  std::optional<int> prompt_length;
  std::int64_t dropped_units = 0; ///< total so far
  int position = 0;
  int queue_length = 0;
  double estimated_wait_s = 0;
  std::int64_t time_left_ms = 0;
  std::string reason;
  std::string error_code;
  std::string error_message;
  conversation::tool_call call; ///< of a response.tool_call, or the part of one
  conversation::usage used; ///< of a chat's turn or a duplex step: `usage` in response.done, `chunk_usage` in deltas
};

/// Like `glance`.
std::optional<server_message> read_server_message(std::string_view frame);

} // namespace parley::client
