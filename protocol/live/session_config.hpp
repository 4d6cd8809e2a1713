#pragma once

#include "protocol/json/document.hpp"
#include "protocol/realtime/fault.hpp"
#include "protocol/realtime/items.hpp"
#include "protocol/realtime/sound.hpp"

#include <cstdint>
#include <string>
#include <vector>

// What a client of OpenAI's Live API chooses in `session.start`.
namespace parley::protocol::live {

struct session_config {
  std::string model;          ///< as the client names it: any name is right
  std::string instructions{}; ///< empty = the server's default prompt
  realtime::sound_format format{};
  std::vector<realtime::item> input{}; ///< what was said before
  std::string voice_name = "default";  ///< a name, or an object's id
  // As the client wrote them, JSON:
  std::string voice = R"("default")";
  std::string delegation = R"({"type":"client"})";

  /// The client handles what is delegated, which is nothing; otherwise it expects the server to.
  bool delegates_to_client = true;
};

/// The object `session` of a `session.start`.
realtime::result<session_config> read_session(json::value session);

/// Changes what the object `session` of a `session.update` names: only `delegation` can change.
realtime::result<session_config> updated(session_config before, json::value session);

/// The session as the server shows it. `expires_at_s`: Unix time.
std::string encode_session(const session_config& of, std::string_view id, std::int64_t expires_at_s);

} // namespace parley::protocol::live
