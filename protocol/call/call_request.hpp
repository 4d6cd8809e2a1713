#pragma once

#include "protocol/call/offer.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace parley::protocol::call {

inline constexpr std::size_t most_session_bytes = 64u << 10;
inline constexpr std::size_t most_request_bytes =
    most_offer_bytes + most_session_bytes + 4096; ///< with the heads of its parts

/// What `POST /v1/realtime/calls` asks for.
struct call_request {
  offer what;
  std::optional<std::string> session{}; ///< JSON: what the session begins with
};

/// `content_type`: of the body, `application/sdp`, or `multipart/form-data` with the parts `sdp` and `session`. The session has been
/// checked.
openai::result<call_request> read_call_request(std::string_view content_type, std::string_view body);

} // namespace parley::protocol::call
