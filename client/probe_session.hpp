#pragma once

#include "client/codec/frames.hpp"
#include "client/codec/server_glance.hpp"
#include "client/deadline_timer.hpp"
#include "client/session_socket.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace parley::client {

/// What all probes share: connect, queue, initialise, report what arrives, close, return an exit status.
class probe_session {
public:
  /// `urls`: the addresses of one server or cluster.
  probe_session(std::vector<server_url> urls, std::ostream& out, std::ostream& err);
  virtual ~probe_session() = default;

  /// Blocks until the end of the session and returns the exit status; calls the functions below on the same thread.
  int run(std::string_view mode);

protected:
  virtual std::string init_frame() const = 0;
  virtual void on_created(const server_message& event) = 0;
  virtual void on_output(const server_message& event) = 0;

  /// Prints one aligned line.
  void print_event(std::string_view event, std::string_view what);

  /// Prints one line on the error stream and sets exit status 1.
  void fail(std::string_view why);

  void append(std::string frame) { socket_.append(std::move(frame)); }

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
  void on_lost();
  void on_resumed(std::int64_t resent);
  void on_ended(const ws_client::ending& how);
  void tell_place(const server_message& event);

  std::ostream& err_;
  session_socket socket_;
  deadline_timer overdue_;
  int status_ = 0;
  std::chrono::steady_clock::time_point lost_; ///< when the connection broke
  bool close_asked_ = false;
  bool closed_ = false; ///< session.closed has arrived
  bool gone_ = false;   ///< the connection has ended
};

} // namespace parley::client
