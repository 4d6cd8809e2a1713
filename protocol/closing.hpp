#pragma once

#include "protocol/events.hpp"

#include <cstdint>
#include <string_view>

namespace parley::protocol {

/// The causes of PROTOCOL.md section 9 that end with `session.closed`.
enum class close_cause : std::uint8_t { client, timeout, context_full, shutdown, backend };

/// The WebSocket code of the close frame.
constexpr std::uint16_t close_code(close_cause cause) {
  switch (cause) {
  case close_cause::client:
  case close_cause::timeout:
  case close_cause::context_full: return 1000;
  case close_cause::shutdown: return 1001;
  case close_cause::backend: return 1011;
  }
  return 1011;
}

/// `session.closed.reason` in the words of a dialect. `asked` is the client's own reason, already checked
/// (close_event).
constexpr std::string_view close_word(close_cause cause, dialect spoken, std::string_view asked = "user_stop") {
  switch (cause) {
  case close_cause::client:
    if (spoken == dialect::undecided) return "user_stop";
    return spoken == dialect::legacy ? "stopped" : asked;
  case close_cause::timeout: return "timeout";
  case close_cause::context_full: return "context_full";
  case close_cause::shutdown: return "server_shutdown";
  case close_cause::backend: return spoken == dialect::current ? "backend_error" : "error";
  }
  return "error";
}

/// A client's own word for why it closes, if it is one: `^[a-z0-9_]{1,64}$`. Otherwise `user_stop` (PROTOCOL.md 3.6).
constexpr std::string_view checked_close_reason(std::string_view asked) {
  if (asked.empty() || asked.size() > 64) return "user_stop";
  for (const char c : asked)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return "user_stop";
  return asked;
}

} // namespace parley::protocol
