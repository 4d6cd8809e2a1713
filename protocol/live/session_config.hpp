#pragma once

#include "protocol/json/document.hpp"
#include "protocol/realtime/budget.hpp"
#include "protocol/realtime/fault.hpp"
#include "protocol/realtime/items.hpp"
#include "protocol/realtime/sound.hpp"

#include <cstdint>
#include <string>

// What a client of OpenAI's Live API chooses in `session.start`.
namespace parley::protocol::live {

/// What is kept of a conversation, to be told to the sessions behind it.
inline constexpr realtime::item_limits most_history{.items = 256};

struct session_config {
  std::string model;          ///< as the client names it: any name is right
  std::string instructions{}; ///< empty = the server's default prompt
  realtime::sound_format format{};
  realtime::item_list input{most_history}; ///< what was said before
  std::string voice_name = "alloy";        ///< a name, or an object's id
  // As the client wrote them, JSON:
  std::string voice = R"("alloy")";
  std::string delegation = R"({"type":"client"})";

  /// The client handles what is delegated; otherwise it expects the server's chat to, with its functions.
  bool delegates_to_client = true;
  bool names_delegation = false; ///< it was the client that said so
  std::string functions = "[]";  ///< of the latter, JSON: as the client wrote them
};

/// The object `session` of a `session.start`, whose sound is charged to `sound`.
realtime::result<session_config> read_session(json::value session, realtime::event_sound& sound);

/// Changes what the object `session` of a `session.update` names: only `delegation` can change.
realtime::result<session_config> updated(session_config before, json::value session, realtime::event_sound& event);

/// The session as the server shows it. `expires_at_s`: Unix time.
std::string encode_session(const session_config& of, std::string_view id, std::int64_t expires_at_s);

} // namespace parley::protocol::live
