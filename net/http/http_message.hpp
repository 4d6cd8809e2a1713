#pragma once

#include "net/access/access_control.hpp"

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
};

/// The answer; `type`, the Content-Type, must be a constant of the program.
struct http_reply {
  unsigned status = 200;
  std::string body;
  std::string_view type = "application/json";
  std::string allow{};                                                  ///< for 405: the methods of the path
  std::vector<std::pair<std::string_view, std::string_view>> headers{}; ///< further headers; views of constants
};

/// `{"error":{"code","message"}}`, like every HTTP error (docs/protocol.md 13). `message` must not need escapes.
http_reply error_reply(unsigned status, std::string_view code, std::string_view message);

} // namespace parley::net
