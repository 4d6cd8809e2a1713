#pragma once

#include "client/server_url.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace parley::client {

/// One WebSocket to a server. Never blocks. All calls and callbacks must run on `executor`, one at a time (a strand, or
/// an io_context with one thread).
class ws_client {
public:
  /// How a connection ended.
  struct ending {
    std::uint16_t code = 0; ///< from the server's close frame; 0 if there was none
    std::string error;      ///< the reason, if there was no closing handshake; with the server's words if it refused
  };

  struct callbacks {
    std::function<void()> opened;
    std::function<void(std::string_view)> text; ///< a frame, valid during the call
    std::function<void(const ending&)> ended;   ///< the last callback; also called if the connection could not be made
  };

  ws_client(boost::asio::any_io_executor executor, callbacks told);

  /// Cuts the connection; no callbacks follow.
  ~ws_client();

  ws_client(const ws_client&) = delete;
  ws_client& operator=(const ws_client&) = delete;

  /// Call once. `query` becomes that of the URL. An untrusted certificate ends the connection.
  void connect(const server_url& url, std::string_view query);

  /// Queues a text frame; the queue is unlimited. Dropped before `connect`, and after `close` or the end.
  void send(std::string frame);

  /// The same for a frame shared by many connections.
  void send(std::shared_ptr<const std::string> frame);

  /// Sends what is queued, then closes with 1000.
  void close();

  class impl;

private:
  boost::asio::any_io_executor executor_;
  callbacks told_; ///< kept until `connect`
  std::shared_ptr<impl> impl_;
};

} // namespace parley::client
