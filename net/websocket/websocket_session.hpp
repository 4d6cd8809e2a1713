#pragma once

#include "net/channel/client_channel.hpp"
#include "net/channel/frame_buffer.hpp"
#include "net/receive_deadline.hpp"
#include "net/websocket/heartbeat.hpp"
#include "net/websocket/session_binding.hpp"
#include "net/websocket/websocket_stream.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace parley::net {

/// One WebSocket, from the upgrade to the end. Runs entirely on the strand of its stream.
class websocket_session final : public connection, public std::enable_shared_from_this<websocket_session> {
public:
  /// `reservation`, which its session may share, and `shared` are released in this order and must outlive it.
  websocket_session(stream&& from, connections::slot place, std::shared_ptr<admission::reservation> reservation,
                    service& shared);
  ~websocket_session() override;

  /// Answers the upgrade request, echoing `subprotocol`, and continues from there. `undecided`: the client's first event
  /// tells whether it speaks OpenAI's Realtime API; silence for a moment tells that it does not.
  void run(const http::request<http::string_body>& upgrade, actors::connection_info info,
           const std::optional<std::string>& subprotocol, bool undecided);

  void drain() override {}
  void cut() override;

  /// Called when its link has something to report.
  void on_ring();

private:
  void on_accept(error_code ec, actors::connection_info info, bool undecided);
  void wait_for_first_event(actors::connection_info info);
  void decide(std::string_view first_event);
  void read();
  void on_read(error_code ec, std::size_t bytes);
  void refuse_message();
  void on_message();
  void on_control(websocket::frame_type kind);
  void write(text_frame text);
  void on_write(error_code ec);
  void start_closing();
  void shake_hands(const close_frame& why);
  void tick();
  void on_tick();
  void ping();
  void finish();

  /// Nothing may be asked of the stream any more. While it closes, it reads and drops the rest of what the client
  /// sends, and what it says of the message that was being read is no longer true.
  bool is_over() const { return finished_ || shaking_hands_; }

  websocket_stream ws_;
  const asio::any_io_executor strand_;
  asio::steady_timer heart_;
  asio::steady_timer closing_timer_;
  asio::steady_timer decision_timer_;
  std::unique_ptr<actors::connection_info> undecided_; ///< it has no session yet
  asio::cancellation_signal end_of_reading_;
  asio::cancellation_signal end_of_closing_;
  session_binding<client_channel, actors::session_handle> held_;
  service& shared_;
  std::string owner_; ///< whose messages they are
  frame_buffer buffer_;
  std::optional<base::byte_budget::share> message_; ///< of the message in `buffer_`, if it is large
  text_frame in_flight_;
  heartbeat beat_;
  receive_deadline message_deadline_; ///< of the message in `buffer_`
  bool reading_ = false;
  bool may_read_ = true;
  bool discarding_ = false; ///< input is no longer used, but still read so that control frames are seen
  bool pinging_ = false;
  bool closing_ = false;
  bool shaking_hands_ = false; ///< we started the closing handshake, and its end ends the connection
  bool finished_ = false;
};

} // namespace parley::net
