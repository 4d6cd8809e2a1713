#pragma once

#include "protocol/json/document.hpp"
#include "protocol/openai/realtime/session_config.hpp"
#include "protocol/openai/shared/field_set.hpp"
#include "protocol/openai/shared/items.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// The events that clients of OpenAI's Realtime API send. Views and values refer to the frame's document.
namespace parley::protocol::openai::realtime {

struct session_update {
  json::value session;
};
struct audio_append {
  borrowed_text audio; ///< base64
};
struct audio_commit {};
struct audio_clear {};
struct item_create {
  item one;
  std::optional<std::string> previous{};
};
struct item_delete {
  std::string id;
};
struct item_retrieve {
  std::string id;
};
struct item_truncate {
  std::string id;
  int content_index = 0;
  std::int64_t audio_end_ms = 0;
};

/// What `response.create` asks for, with the session's settings where it says nothing.
struct response_request {
  bool in_conversation = true; ///< false = out of band
  std::string instructions{};
  bool own_instructions = false; ///< given with this request
  bool audible = true;
  int max_output_tokens = 0;
  speech::sound_format output{};
  std::string voice{};
  std::string metadata = "null"; ///< JSON
  std::string tools = "[]";      ///< JSON
  std::string tool_choice = R"("auto")";

  /// An item of `input`, or the id of one of the conversation.
  using input_item = std::variant<item, std::string>;
  std::optional<std::vector<input_item>> input{}; ///< instead of the conversation
};
struct response_create {
  response_request request;
};
struct response_cancel {
  std::string response_id; ///< empty = whichever
};
struct output_clear {};  ///< of a call: what it is yet to hear is dropped
struct nothing_asked {}; ///< known, and of no consequence here

using client_event =
    std::variant<nothing_asked, session_update, audio_append, audio_commit, audio_clear, item_create, item_delete,
                 item_retrieve, item_truncate, response_create, response_cancel, output_clear>;

/// Reads one event. `current` has the formats and defaults that apply; `sound` is charged for what is decoded here, which an
/// append's sound is not.
result<client_event> read_client_event(json::value event, const session_config& current, event_sound& sound);

/// A response as the session's settings have it: what answers a turn.
response_request default_response(const session_config& current);

/// Whether the first event of a connection is a `session.update` as only clients of the Realtime API send it, in its
/// present form or the beta's.
bool is_first_update(std::string_view frame);

} // namespace parley::protocol::openai::realtime
