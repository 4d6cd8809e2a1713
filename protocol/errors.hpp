#pragma once

#include <tl/expected.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace parley::protocol {

/// docs/protocol.md section 10.
enum class error_code : std::uint8_t {
  not_ready,
  unknown_event,
  invalid_event,
  missing_field,
  invalid_payload,
  service_unavailable,
  queue_full,
  worker_busy,
  worker_connect_failed,
  inference_error,
  resume_refused, ///< our addition (docs/protocol.md 14)
  quota_exceeded, ///< ours, too: the API key has used up what it may use in a day or a month
};

/// The properties of an error code (docs/protocol.md section 10).
struct error_traits {
  std::string_view wire;    ///< `error.code`
  bool client_fault;        ///< `error.type`: client_error or server_error
  std::uint16_t close_code; ///< for the WebSocket; 0 = the session continues
};

/// In the order of `error_code`.
inline constexpr std::array<error_traits, 12> error_table{{
    {"not_ready", true, 0},
    {"unknown_event", true, 0},
    {"invalid_event", true, 0},
    {"missing_field", true, 0},
    {"invalid_payload", true, 0},
    {"service_unavailable", false, 1013},
    {"queue_full", false, 1013},
    {"worker_busy", false, 1013},
    {"worker_connect_failed", false, 1013},
    {"inference_error", false, 0},
    {"resume_refused", true, 1008},
    {"quota_exceeded", true, 1008},
}};

/// What quota_exceeded is called in the dialects of OpenAI's.
inline constexpr std::string_view out_of_quota = "insufficient_quota";

constexpr const error_traits& traits(error_code code) {
  return error_table[static_cast<std::size_t>(code)];
}

/// An error that a client can cause: a code for the wire and a message for humans.
struct error {
  error_code code;
  std::string message;
};

/// Errors that clients can cause are returned, never thrown.
template<class T>
using result = tl::expected<T, error>;

/// invalid_payload with the message "field: what".
inline tl::unexpected<error> invalid(std::string_view field, std::string_view what) {
  return tl::unexpected(error{error_code::invalid_payload, std::string(field).append(": ").append(what)});
}

} // namespace parley::protocol
