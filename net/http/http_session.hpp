#pragma once

#include "net/access/access_control.hpp"
#include "net/access/peer.hpp"
#include "net/beast.hpp"
#include "net/connections.hpp"
#include "net/http/answer_head.hpp"
#include "net/receive_deadline.hpp"
#include "net/routes/http_message.hpp"
#include "net/routes/pending_reply.hpp"
#include "net/service.hpp"
#include "net/stream.hpp"
#include "protocol/openai/completions/request.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parley::net {

/// One HTTP/1.1 connection: one request after another, until it closes or becomes a WebSocket. Everything runs on its
/// stream's strand.
class http_session final : public connection, public std::enable_shared_from_this<http_session> {
public:
  /// `shared` must outlive it. `place` is returned at the end, or passed on to the WebSocket.
  http_session(tcp::socket&& socket, peer from, connections::slot place, service& shared);

  /// For a connection that has answered a request elsewhere; `came` is what it has sent of its next one.
  http_session(stream&& from, peer who, connections::slot place, service& shared, std::string_view came);
  ~http_session() override;

  /// The first call; allowed from any thread.
  void run();

  void drain() override;
  void cut() override;

private:
  using request_parser = http::request_parser<http::string_body>;

  request_parser& parser();
  const http::request<http::string_body>& request();
  connections::slot leave();
  void secure();
  void refuse_plain();
  void read();
  void on_header(error_code ec);
  std::optional<access_control::entry> let_in(const credentials& from, access_control::visit why,
                                              http_reply (*refused)(refusal, std::string_view));
  void log_refused_page(const credentials& from);
  actors::connection_info connection_of(std::string key) const;
  void ask_for_body(void (http_session::*next)());
  void read_body();
  template<class Work>
  void on_reader(Work work);
  void admit_completion();
  void read_completion();
  void on_completion();
  void begin_completion(protocol::result<protocol::openai_request> request);
  void on_request(error_code ec);
  void admit_call();
  void begin_call();
  void await_reply();
  void refuse(error_code why);
  void upgrade();
  void route();
  void deliver();
  void on_reply(http_reply reply);
  answer_terms terms(bool keep_alive);
  bool may_go_on();
  void write(http_reply reply, bool keep_alive);
  void give_piece(std::string_view bytes, bool more);
  void read_piece(bool keep_alive);
  void write_some(bool keep_alive);
  void on_write(error_code ec, bool keep_alive);
  void say_goodbye();
  void linger();
  void finish();

  stream stream_;
  const asio::any_io_executor strand_; ///< still valid when the stream has moved on
  asio::steady_timer answer_timer_;
  beast::flat_buffer buffer_;
  std::optional<connections::slot> place_;
  service& shared_;
  const peer peer_;               ///< the other end of the connection
  peer client_;                   ///< who sent the request at hand: the same, or whom a trusted proxy names
  const bool taken_over_ = false; ///< TLS, if any, has been started before
  std::optional<request_parser> parser_;
  std::optional<http::response<http::buffer_body>> response_;
  std::optional<http::response_serializer<http::buffer_body>> writing_;
  reply_body body_;                                  ///< of the response
  std::uint64_t read_ = 0;                           ///< bytes of it that have been read, if it is a file
  std::vector<char> piece_;                          ///< of it that is being written
  std::string owner_;                                ///< whose answers and bodies they are
  std::optional<base::byte_budget::share> share_;    ///< of the answer
  std::optional<base::byte_budget::share> received_; ///< of the completion being read
  std::chrono::steady_clock::time_point write_begun_;
  std::size_t written_ = 0; ///< bytes of the response written so far
  std::shared_ptr<pending_reply> pending_;
  std::optional<access_control::entry> entry_; ///< for the completion or the call being read
  receive_deadline body_deadline_;             ///< of that completion
  std::size_t lingered_ = 0;
  bool idle_ = true; ///< between two requests
};

} // namespace parley::net
