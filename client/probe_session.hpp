#pragma once

#include "client/server_url.hpp"
#include "client/ws_client.hpp"
#include "protocol/codec/client_side.hpp"
#include "protocol/codec/server_glance.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <iosfwd>
#include <string>
#include <string_view>

namespace parley::client {

/// What all probes share: connect, queue, initialise, report what arrives, close, return an exit status.
class probe_session {
public:
  probe_session(std::ostream& out, std::ostream& err);
  virtual ~probe_session() = default;

  /// Blocks until the end of the session and returns the exit status; calls the functions below on the same thread.
  int run(const server_url& url, std::string_view mode);

protected:
  virtual std::string init_frame() const = 0;
  virtual void on_created(const protocol::server_message& event) = 0;
  virtual void on_output(const protocol::server_message& event) = 0;

  /// Prints one aligned line.
  void print_event(std::string_view event, std::string_view what);

  /// Prints one line on the error stream and sets exit status 1.
  void fail(std::string_view why);

  void send(std::string frame) { socket_.send(std::move(frame)); }

  /// The session has done its work: requests its close.
  void close_session(std::string_view reason);

  /// From now on the server owes an answer.
  void expect_answer();
  void expect_nothing() { overdue_.cancel(); }

  /// Nothing more will be sent.
  bool stopped() const { return close_asked_ || closed_ || gone_; }

  boost::asio::io_context io_{1};
  std::ostream& out_;

private:
  void on_text(std::string_view frame);
  void expect_end();
  void on_ended(const ws_client::ending& how);
  void tell_place(const protocol::server_message& event);

  std::ostream& err_;
  ws_client socket_;
  boost::asio::steady_timer overdue_;
  int status_ = 0;
  bool close_asked_ = false;
  bool closed_ = false; ///< session.closed has arrived
  bool gone_ = false;   ///< the connection has ended
};

} // namespace parley::client
