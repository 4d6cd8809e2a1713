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

/// The frames of one WebSocket, as its server. Beast's operations are compiled in websocket_stream.cpp alone, which takes
/// most of a minute; handlers are erased as in `stream`. All calls are on its executor, and at most one read, one write,
/// one ping and one close are under way at a time.
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

  /// A longer message fails the read with `websocket::error::message_too_big`.
  void read_message_max(std::size_t bytes);

  /// Called from within a read for each ping, pong and close frame.
  void on_control(std::function<void(websocket::frame_type)> call);

  /// Answers the upgrade request, echoing `subprotocol`.
  void async_accept(const http::request<http::string_body>& upgrade, const std::optional<std::string>& subprotocol,
                    handler<> done);

  bool is_open() const;

  /// Reads a part of a message into `room`, at most `read_size_hint` bytes of it with profit.
  void async_read_some(std::span<char> room, handler<std::size_t> done);
  std::size_t read_size_hint() const;
  bool is_message_done() const;
  bool got_binary() const;

  /// One text message in one frame. `text` outlives the operation.
  void async_write(std::string_view text, handler<std::size_t> done);
  void async_ping(handler<> done);

  /// Sends a close frame and waits for the other side's. Of `reason`, as many whole characters as fit are sent (123 bytes).
  void async_close(unsigned code, std::string_view reason, handler<> done);

private:
  class beast_stream;
  std::unique_ptr<beast_stream> ws_;
};

} // namespace parley::net
