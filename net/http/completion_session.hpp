#pragma once

#include "net/beast.hpp"
#include "net/stream.hpp"
#include "net/websocket/session_binding.hpp"
#include "protocol/openai/talk.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace parley::net {

/// One `POST /v1/chat/completions`: a chat session with a single turn, subject to the same queue and limits as all
/// others. Disconnecting ends the session. The connection closes after the answer. Runs entirely on the stream's
/// strand.
class completion_session final : public connection, public std::enable_shared_from_this<completion_session> {
public:
  completion_session(stream&& from, connections::slot place, std::shared_ptr<admission::reservation> reservation,
                     service& shared);
  ~completion_session() override;

  /// `body`: what the request holds, until it is answered.
  void run(protocol::openai_request request, actors::connection_info info, std::optional<byte_budget::share> body);

  /// Nothing to do: the server drains its session.
  void drain() override {}
  void cut() override;

  /// Called when its link has something to report.
  void on_ring();

private:
  void watch();
  void follow(protocol::openai_step&& step);
  void tell_session(std::string frame);
  void fail(const protocol::openai_fault& fault);
  void write(std::string bytes);
  void write_some();
  void on_write(error_code ec);
  void say_goodbye();
  void finish();

  stream stream_;
  const asio::any_io_executor strand_; ///< still valid when the stream is closed
  asio::steady_timer goodbye_timer_;
  session_binding held_;
  service& shared_;
  std::optional<byte_budget::share> body_;
  std::optional<protocol::openai_talk> talk_;
  std::array<char, 512> ignored_;
  unsigned status_ = 200;
  std::string out_; ///< the output being written
  std::size_t written_ = 0;
  std::chrono::steady_clock::time_point write_begun_;
  bool writing_ = false;
  bool frame_held_ = false; ///< a frame of the link, until its output is written
  bool began_ = false;      ///< the head of an event stream has been written
  bool answered_ = false;   ///< the last bytes are in `out_` or have been written
  bool finished_ = false;
};

} // namespace parley::net
