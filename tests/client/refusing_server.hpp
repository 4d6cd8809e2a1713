#pragma once

#include <memory>
#include <string>

namespace parley::client {

/// Answers every HTTP request with this status and body, and keeps the connection open until the client closes it.
class refusing_server {
public:
  /// `status`: as in the first line of the answer, "401 Unauthorized".
  refusing_server(std::string status, std::string body);
  ~refusing_server();

  std::string url() const;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace parley::client
