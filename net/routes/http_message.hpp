#pragma once

#include "net/access/access_control.hpp"
#include "net/routes/reply_body.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parley::net {

/// One request, read completely.
struct http_request {
  std::string method;
  std::string path; ///< still percent-encoded
  std::string body;
  std::string if_none_match{}; ///< ETags that the client already has
  permissions may;
  bool has_room = true; ///< its client has not too many answers that wait for their readers
};

/// The answer; `type`, the Content-Type, must be a constant of the program.
struct http_reply {
  unsigned status = 200;
  reply_body body{};
  std::string_view type = "application/json";
  std::string location{};                                               ///< of what was made
  std::string allow{};                                                  ///< for 405: the methods of the path
  std::vector<std::pair<std::string_view, std::string_view>> headers{}; ///< further headers; views of constants
  std::int64_t retry_after_s = 1; ///< of a 429 or 503 whose headers say nothing of it
};

/// `{"error":{"code","message"}}`, like every HTTP error (docs/protocol.md 13). `message` must not need escapes.
http_reply error_reply(unsigned status, std::string_view code, std::string_view message);

/// For clients that have too many answers waiting for their readers.
http_reply no_room_reply();

} // namespace parley::net
