#pragma once

#include "net/access/peer.hpp"
#include "net/beast.hpp"
#include "net/channel/event_channel.hpp"
#include "net/http/answer_head.hpp"
#include "net/stream.hpp"
#include "net/websocket/session_binding.hpp"
#include "protocol/openai/completions/talk.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace parley::net {

/// One `POST /v1/chat/completions`: a chat session with a single turn, subject to the same queue and limits as all
/// others. Disconnecting ends the session. After the answer, the connection waits for its next request, which another
/// `http_session` reads, or closes. Runs entirely on the stream's strand.
class completion_session final : public connection, public std::enable_shared_from_this<completion_session> {
public:
  completion_session(stream&& from, peer who, connections::slot place,
                     std::shared_ptr<admission::reservation> reservation, service& shared, answer_terms terms);
  ~completion_session() override;

  /// `body`: what the request holds, until it is answered.
  void run(protocol::openai_request request, actors::connection_info info,
           std::optional<base::byte_budget::share> body);

  /// The server drains its session: only a connection that waits for its next request closes.
  void drain() override;
  void cut() override;

  /// Called when its link has something to report.
  void on_ring();

private:
  void watch();
  void on_bytes(error_code ec, std::size_t bytes);
  void follow(protocol::openai_talk::effects&& effects);
  void perform(const protocol::guest::open_session& effect);
  void perform(protocol::guest::to_session& effect);
  void perform(const protocol::guest::turn_to_session& effect);
  void perform(const protocol::guest::drop_session& effect);
  void perform(const protocol::openai_reply& effect);
  void fail(const protocol::openai_fault& fault);
  void write(std::string bytes);
  void write_some();
  void on_write(error_code ec);
  std::string whole(unsigned status, std::string_view body);
  std::string piece(std::string_view events, bool last);
  bool goes_on() const;
  void wait_for_next();
  void pass_on();
  void say_goodbye();
  void finish();

  stream stream_;
  const asio::any_io_executor strand_; ///< still valid when the stream is closed
  asio::steady_timer end_timer_;
  const peer peer_;
  session_binding<event_channel, actors::guest_handle> held_;
  actors::connection_info info_;
  service& shared_;
  std::optional<base::byte_budget::share> body_;
  answer_terms terms_;
  std::optional<protocol::openai_talk> talk_;
  std::array<char, 512> read_;
  std::size_t came_ = 0; ///< of `read_`: bytes of the next request
  bool reading_ = false;
  bool disturbed_ = false; ///< the client sent something while it had to wait: what it meant is not looked at
  bool between_ = false;   ///< waits for the next request
  unsigned status_ = 200;
  std::string out_; ///< the output being written
  std::size_t written_ = 0;
  std::chrono::steady_clock::time_point write_begun_;
  bool writing_ = false;
  bool event_held_ = false; ///< an event of the session, until what answers it is written
  bool began_ = false;      ///< the head of an event stream has been written
  bool answered_ = false;   ///< the last bytes are in `out_` or have been written
  bool finished_ = false;
};

} // namespace parley::net
