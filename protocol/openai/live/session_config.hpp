#pragma once

#include "protocol/json/document.hpp"
#include "protocol/openai/shared/budget.hpp"
#include "protocol/openai/shared/fault.hpp"
#include "protocol/openai/shared/items.hpp"
#include "protocol/speech/sound.hpp"

#include <cstdint>
#include <string>

// What a client of OpenAI's Live API chooses in `session.start`.
namespace parley::protocol::openai::live {

/// What is kept of a conversation, to be told to the sessions behind it.
inline constexpr item_limits most_history{.items = 256};

struct session_config {
  std::string model;          ///< as the client names it: any name is right
  std::string instructions{}; ///< empty = the server's default prompt
  speech::sound_format format{};
  item_list input{most_history};    ///< what was said before
  std::string voice_name = "alloy"; ///< a name, or an object's id
  // As the client wrote them, JSON:
  std::string voice = R"("alloy")";
  std::string delegation = R"({"type":"client"})";

  /// The client handles what is delegated; otherwise it expects the server's chat to, with its functions.
  bool delegates_to_client = true;
  bool names_delegation = false; ///< it was the client that said so
  bool may_call = true;          ///< unless its `tool_choice` is "none"
  std::string functions = "[]";  ///< of the latter, JSON: as the client wrote them

  /// Whether something else is delegated than in `other`, or to somebody else.
  bool delegates_otherwise(const session_config& other) const {
    return delegates_to_client != other.delegates_to_client || names_delegation != other.names_delegation ||
           may_call != other.may_call || functions != other.functions;
  }
};

/// The object `session` of a `session.start`, whose sound is charged to `sound`.
result<session_config> read_session(json::value session, event_sound& sound);

/// Changes what the object `session` of a `session.update` names: only `delegation` can change.
result<session_config> updated(session_config before, json::value session, event_sound& event);

/// The session as the server shows it. `expires_at_s`: Unix time.
std::string encode_session(const session_config& of, std::string_view id, std::int64_t expires_at_s);

} // namespace parley::protocol::openai::live
