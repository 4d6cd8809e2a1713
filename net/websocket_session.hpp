#pragma once

#include "net/beast.hpp"
#include "net/frame_buffer.hpp"
#include "net/heartbeat.hpp"
#include "net/held_session.hpp"
#include "net/stream.hpp"

#include <memory>
#include <optional>
#include <string>

namespace parley::net {

/// One WebSocket, from the upgrade to the end. Everything runs on the strand of its stream.
class websocket_session final : public connection, public std::enable_shared_from_this<websocket_session> {
public:
  /// `pass`, which may be held by its session too, and `shared` are given back and outlive it, in this order.
  websocket_session(stream&& from, connections::place place, std::shared_ptr<admission::pass> pass, service& shared);
  ~websocket_session() override;

  /// Answers the upgrade request, echoing `subprotocol`, and goes on from there.
  void run(const http::request<http::string_body>& upgrade, actors::connection_info info,
           std::optional<std::string> subprotocol);

  void drain() override {}
  void cut() override;

  /// Its link has something to say.
  void on_ring();

private:
  void on_accept(error_code ec, actors::connection_info info);
  void read();
  void on_read(error_code ec, std::size_t bytes);
  void on_message();
  void on_control(websocket::frame_type kind);
  void write(outbox::frame text);
  void on_write(error_code ec);
  void start_closing();
  void shake_hands(const outbox::close_frame& why);
  void tick();
  void on_tick();
  void ping();
  void finish();

  websocket::stream<stream, false> ws_;
  const asio::any_io_executor strand_;
  asio::steady_timer heart_;
  asio::steady_timer closing_timer_;
  asio::cancellation_signal end_of_reading_;
  asio::cancellation_signal end_of_closing_;
  held_session held_;
  service& shared_;
  frame_buffer buffer_;
  outbox::frame in_flight_;
  heartbeat beat_;
  bool reading_ = false;
  bool may_read_ = true;
  bool discarding_ = false; ///< input is of no use any more; it is read so that control frames are seen
  bool pinging_ = false;
  bool closing_ = false;
  bool shaking_hands_ = false; ///< the closing handshake is ours, its end is the connection's
  bool finished_ = false;
};

} // namespace parley::net
