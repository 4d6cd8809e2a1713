#pragma once

#include "net/beast.hpp"
#include "net/stream.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace parley::net {

/// Reads and writes the frames of one WebSocket, on the server's side. Only websocket_stream.cpp compiles Beast's
/// operations, which takes most of a minute; handlers are type-erased as in `stream`. Call it on its executor only, with
/// at most one read, one write, one ping and one close under way.
class websocket_stream {
public:
  template<class... Result>
  using handler = stream::handler<Result...>;

  explicit websocket_stream(stream&& from);
  ~websocket_stream();
  websocket_stream(const websocket_stream&) = delete;
  websocket_stream& operator=(const websocket_stream&) = delete;

  asio::any_io_executor get_executor();

  /// The socket and its deadline.
  beast::tcp_stream& plain();

  /// Reading a longer message fails with `websocket::error::message_too_big`.
  void read_message_max(std::size_t bytes);

  /// Called from within a read for each ping, pong and close frame.
  void on_control(std::function<void(websocket::frame_type)> call);

  /// Answers the upgrade request, echoing `subprotocol`. `traceparent`: empty = the answer has none.
  void async_accept(const http::request<http::string_body>& upgrade, const std::optional<std::string>& subprotocol,
                    const std::string& traceparent, handler<> done);

  bool is_open() const;

  /// Reads a part of a message into `room`. More room than `read_size_hint` does not help.
  void async_read_some(std::span<char> room, handler<std::size_t> done);
  std::size_t read_size_hint() const;
  bool is_message_done() const;
  bool got_binary() const;

  /// Sends a text message in one frame. `text` must outlive the operation.
  void async_write(std::string_view text, handler<std::size_t> done);
  void async_ping(handler<> done);

  /// Sends a close frame and waits for the other side's. Cuts `reason` to 123 bytes, between two characters. The last
  /// call: from then on, what a read that is under way reports must not be used.
  void async_close(unsigned code, std::string_view reason, handler<> done);

private:
  class beast_stream;
  std::unique_ptr<beast_stream> ws_;
};

} // namespace parley::net
