#pragma once

#include "net/routes/http_message.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace parley::net {

/// Answers one request, at once or later, from any thread. Only the first call counts.
using responder = std::function<void(http_reply)>;

/// The segments that match each `{}` of a pattern.
using path_segments = std::vector<std::string>;

/// The table of HTTP routes: filled before the server starts, then only read, by all I/O threads. `{}` in a pattern
/// matches one path segment, which the handler receives percent-decoded.
class router {
public:
  using handler = std::function<void(const http_request&, const path_segments&, responder)>;

  void add(std::string_view method, std::string_view pattern, handler run);

  /// The routes, as `METHOD PATTERN`.
  std::vector<std::string> listed() const;

  /// 404 for an unknown path, 405 for a method that the path lacks; HEAD is handled as GET. OPTIONS is answered for every
  /// known path, and for `*`, with the methods (RFC 9110 9.3.7).
  void route(const http_request& request, responder respond) const;

private:
  struct entry {
    std::string method;
    std::string pattern;
    handler run;
  };
  /// The methods of a path, as in the header Allow; empty = there is nothing there.
  std::string allowed(std::string_view path) const;

  std::vector<entry> entries_;
};

} // namespace parley::net
