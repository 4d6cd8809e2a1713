#pragma once

#include "net/beast.hpp"
#include "net/held_session.hpp"
#include "net/stream.hpp"
#include "protocol/openai_talk.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace parley::net {

/// One `POST /v1/chat/completions`: a chat session that has a single turn, through the same queue and limits as others.
/// Its client's leaving ends the session. The connection closes after the answer. Everything runs on the strand of the
/// stream.
class completion_session final : public connection, public std::enable_shared_from_this<completion_session> {
public:
  completion_session(stream&& from, connections::place place, std::shared_ptr<admission::pass> pass, service& shared);
  ~completion_session() override;

  void run(protocol::openai_request request, actors::connection_info info);

  /// Its session is told by the house.
  void drain() override {}
  void cut() override;

  /// Its link has something to say.
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
  const asio::any_io_executor strand_; ///< still there when the stream is closed
  asio::steady_timer goodbye_timer_;
  held_session held_;
  service& shared_;
  std::optional<protocol::openai_talk> talk_;
  std::array<char, 512> ignored_;
  unsigned status_ = 200;
  std::string out_; ///< being written
  std::size_t written_ = 0;
  std::chrono::steady_clock::time_point write_begun_;
  bool writing_ = false;
  bool frame_held_ = false; ///< one of the link's, until what it gave is written
  bool began_ = false;      ///< the head of an event stream is out
  bool answered_ = false;   ///< the last bytes are in `out_`, or out
  bool finished_ = false;
};

} // namespace parley::net
