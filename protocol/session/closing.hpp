#pragma once

#include "protocol/events.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace parley::protocol {

/// The causes of docs/protocol.md section 9 that end with `session.closed`.
enum class close_cause : std::uint8_t { client, timeout, context_full, quota, shutdown, backend };

/// The WebSocket code of the close frame.
constexpr std::uint16_t close_code(close_cause cause) {
  switch (cause) {
  case close_cause::client:
  case close_cause::timeout:
  case close_cause::context_full: return 1000;
  case close_cause::quota: return 1008;
  case close_cause::shutdown: return 1001;
  case close_cause::backend: return 1011;
  }
  return 1011;
}

/// The WebSocket code for a session that goes on when its client comes back (RFC 6455's registry: service restart).
inline constexpr std::uint16_t service_restart = 1012;

/// `session.closed.reason` in the words of a dialect. `asked` is the client's own reason, already validated
/// (close_event).
constexpr std::string_view close_word(close_cause cause, dialect spoken, std::string_view asked = "user_stop") {
  switch (cause) {
  case close_cause::client:
    if (spoken == dialect::undecided) return "user_stop";
    return spoken == dialect::legacy ? "stopped" : asked;
  case close_cause::timeout: return "timeout";
  case close_cause::context_full: return "context_full";
  case close_cause::quota: return "quota_exceeded";
  case close_cause::shutdown: return "server_shutdown";
  case close_cause::backend: return spoken == dialect::current ? "backend_error" : "error";
  }
  return "error";
}

/// How a session ended, in a closed set of words: label `reason` of `parley_sessions_ended_total`. Reasons chosen by
/// clients count as `other`, and so do connections that end without `session.closed`.
enum class session_end : std::uint8_t {
  timeout,
  context_full,
  quota_exceeded,
  server_shutdown,
  backend_error,
  error, ///< the same in the legacy dialect, and before one is chosen
  client_closed,
  user_stop,
  stopped, ///< the same in the legacy dialect
  other,
};

/// In the order of `session_end`.
inline constexpr std::array<std::string_view, 10> session_end_words{
    "timeout", "context_full",  "quota_exceeded", "server_shutdown", "backend_error",
    "error",   "client_closed", "user_stop",      "stopped",         "other"};

constexpr std::string_view word_of(session_end how) {
  return session_end_words[static_cast<std::size_t>(how)];
}

constexpr session_end end_of(close_cause cause, dialect spoken, std::string_view asked = "user_stop") {
  switch (cause) {
  case close_cause::client: {
    const auto word = close_word(cause, spoken, asked);
    if (word == word_of(session_end::user_stop)) return session_end::user_stop;
    return word == word_of(session_end::stopped) ? session_end::stopped : session_end::other;
  }
  case close_cause::timeout: return session_end::timeout;
  case close_cause::context_full: return session_end::context_full;
  case close_cause::quota: return session_end::quota_exceeded;
  case close_cause::shutdown: return session_end::server_shutdown;
  case close_cause::backend: return spoken == dialect::current ? session_end::backend_error : session_end::error;
  }
  return session_end::other;
}

/// Why the server closes the connection without `session.closed`, apart from refusals (error_table).
enum class hang_up_cause : std::uint8_t { unknown_mode, id_in_use, not_json, binary_frame, too_many_errors };

struct hang_up_traits {
  std::uint16_t close_code;
  std::string_view words; ///< for the close frame
};

/// In the order of `hang_up_cause`.
inline constexpr std::array<hang_up_traits, 5> hang_up_table{{
    {1008, "unknown mode"},
    {1008, "session_id is in use"},
    {1003, "not JSON"},
    {1003, "binary frame"},
    {1008, "too many errors"},
}};

constexpr const hang_up_traits& traits(hang_up_cause cause) {
  return hang_up_table[static_cast<std::size_t>(cause)];
}

/// A client's own reason for closing, if it is `^[a-z0-9_]{1,64}$`; otherwise `user_stop` (docs/protocol.md 3.6).
constexpr std::string_view checked_close_reason(std::string_view asked) {
  if (asked.empty() || asked.size() > 64) return "user_stop";
  for (const char c : asked)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return "user_stop";
  return asked;
}

} // namespace parley::protocol
