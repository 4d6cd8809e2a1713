#include "net/http_session.hpp"

#include "net/doorbell.hpp"
#include "net/subprotocol.hpp"
#include "net/target.hpp"
#include "net/websocket_session.hpp"

#include <array>
#include <utility>

namespace parley::net {
namespace {

constexpr std::size_t most_lingered_bytes = 1u << 20;

http_reply reply_to(error_code why) {
  if (why == http::error::header_limit || why == http::error::buffer_overflow)
    return error_reply(431, "headers_too_large", "the request headers are too large");
  if (why == http::error::body_limit) return error_reply(413, "body_too_large", "the request body is too large");
  return error_reply(400, "bad_request", "this is not an HTTP/1.1 request");
}

/// What is wrong with an upgrade that would else be accepted (RFC 6455 4.2.1).
std::optional<http_reply> upgrade_fault(const http::request<http::string_body>& request, bool early_bytes) {
  if (request[http::field::sec_websocket_version] != "13")
    return error_reply(426, "upgrade_required", "only version 13 of WebSocket is spoken here");
  if (request[http::field::sec_websocket_key].empty())
    return error_reply(400, "bad_request", "Sec-WebSocket-Key is missing");
  if (early_bytes) return error_reply(400, "bad_request", "frames were sent before the upgrade was answered");
  return std::nullopt;
}

std::string join_subprotocols(const http::request<http::string_body>& request) {
  std::string all;
  const auto [first, last] = request.equal_range(http::field::sec_websocket_protocol);
  for (auto field = first; field != last; ++field) all.append(field->value()).push_back(',');
  return all;
}

} // namespace

/// The answer to one request on its way from any thread to the connection's strand.
class http_session::pending_reply {
public:
  explicit pending_reply(std::function<void()> post) : bell_(std::move(post)) {}

  void give(http_reply reply) {
    {
      const std::lock_guard lock(mutex_);
      if (given_) return;
      given_ = true;
      reply_ = std::move(reply);
    }
    bell_.ring();
  }

  std::optional<http_reply> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(reply_, std::nullopt);
  }

  void detach() { bell_.detach(); }

private:
  doorbell bell_;
  std::mutex mutex_;
  std::optional<http_reply> reply_;
  bool given_ = false;
};

http_session::http_session(tcp::socket&& socket, connections::place place, service& shared)
    : stream_(std::move(socket)), strand_(stream_.get_executor()), answer_timer_(strand_),
      buffer_(shared.limits.header_bytes + 4096), place_(std::move(place)), shared_(shared) {}

http_session::~http_session() {
  finish();
}

void http_session::run() {
  asio::dispatch(strand_, [self = shared_from_this()] {
    self->place_->move_to(self->weak_from_this());
    self->read();
  });
}

void http_session::drain() {
  asio::post(strand_, [self = weak_from_this()] {
    if (const auto live = self.lock(); live && live->idle_) live->finish();
  });
}

void http_session::cut() {
  asio::post(strand_, [self = weak_from_this()] {
    if (const auto live = self.lock()) live->finish();
  });
}

void http_session::read() {
  if (!place_) return;
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(shared_.limits.header_bytes));
  parser_->body_limit(shared_.limits.body_bytes);
  stream_.expires_after(response_ ? shared_.limits.keep_alive : shared_.limits.handshake);
  http::async_read_header(stream_, buffer_, *parser_,
                          [self = shared_from_this()](error_code ec, std::size_t) { self->on_header(ec); });
}

void http_session::on_header(error_code ec) {
  idle_ = false;
  if (ec) return refuse(ec);
  stream_.expires_after(shared_.limits.handshake);
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](error_code ec, std::size_t) { self->on_request(ec); });
}

void http_session::on_request(error_code ec) {
  if (ec) return refuse(ec);
  const auto path = split_target(parser_->get().target()).path;
  if (path == "/v1/realtime" && websocket::is_upgrade(parser_->get())) return upgrade();
  route();
}

void http_session::refuse(error_code why) {
  // Only a peer that sent something wrong is told; one that is gone or silent is not.
  static const auto& http_errors = http::make_error_code(http::error::bad_method).category();
  if (why.category() != http_errors || why == http::error::end_of_stream || why == http::error::partial_message)
    return finish();
  write(reply_to(why), false);
}

void http_session::upgrade() {
  const auto& request = parser_->get();
  if (auto fault = upgrade_fault(request, buffer_.size() > 0)) return write(std::move(*fault), false);
  if (shared_.all.draining())
    return write(error_reply(503, "service_unavailable", "the server is shutting down"), false);
  const std::string_view query = split_target(request.target()).query;
  actors::connection_info info;
  info.mode = query_value(query, "mode");
  info.session_id = query_value(query, "session_id");
  error_code unknown;
  info.remote = stream_.socket().remote_endpoint(unknown).address().to_string();
  info.accepted = std::chrono::steady_clock::now();
  auto next = std::make_shared<websocket_session>(std::move(stream_), std::move(*place_), shared_.limits, shared_.door);
  place_.reset();
  next->run(request, std::move(info), choose_subprotocol(join_subprotocols(request)));
}

void http_session::route() {
  const auto& request = parser_->get();
  error_code unknown;
  const auto remote = stream_.socket().remote_endpoint(unknown).address();
  const bool mapped = remote.is_v6() && remote.to_v6().is_v4_mapped();
  http_request plain;
  plain.method = request.method_string();
  plain.path = split_target(request.target()).path;
  plain.body = request.body();
  plain.from_loopback =
      mapped ? asio::ip::make_address_v4(asio::ip::v4_mapped, remote.to_v6()).is_loopback() : remote.is_loopback();

  pending_ = std::make_shared<pending_reply>([self = weak_from_this(), strand = strand_] {
    asio::post(strand, [self] {
      if (const auto live = self.lock()) live->deliver();
    });
  });
  answer_timer_.expires_after(shared_.limits.handshake);
  // This wait is also what keeps the connection until its answer comes.
  answer_timer_.async_wait([self = shared_from_this(), late = pending_](error_code ec) {
    if (ec) return;
    late->give(error_reply(504, "timeout", "no answer from inside the server"));
    self->deliver();
  });
  shared_.routes.route(plain, [to = pending_](http_reply reply) { to->give(std::move(reply)); });
}

void http_session::deliver() {
  if (!pending_) return;
  if (auto reply = pending_->take()) on_reply(std::move(*reply));
}

void http_session::on_reply(http_reply reply) {
  pending_->detach();
  pending_.reset();
  answer_timer_.cancel();
  if (!place_) return;
  write(std::move(reply), parser_->get().keep_alive() && !shared_.all.draining());
}

void http_session::write(http_reply reply, bool keep_alive) {
  const auto& request = parser_->get();
  auto& response = response_.emplace(static_cast<http::status>(reply.status), 11);
  response.set(http::field::server, "parley");
  response.set(http::field::content_type, beast::string_view(reply.type.data(), reply.type.size()));
  response.set(http::field::cache_control, "no-store");
  if (!reply.allow.empty()) response.set(http::field::allow, reply.allow);
  if (reply.status == 426) {
    response.set(http::field::upgrade, "websocket");
    response.set(http::field::sec_websocket_version, "13");
  }
  response.keep_alive(keep_alive);
  if (reply.status == 426) response.insert(http::field::connection, "upgrade");
  response.content_length(reply.body.size());
  if (request.method() != http::verb::head) response.body() = std::move(reply.body);
  stream_.expires_after(shared_.limits.handshake);
  http::async_write(stream_, response, [self = shared_from_this(), keep_alive](error_code ec, std::size_t) {
    self->on_write(ec, keep_alive);
  });
}

void http_session::on_write(error_code ec, bool keep_alive) {
  if (ec) return finish();
  response_->body().clear();
  if (keep_alive && !shared_.all.draining()) {
    idle_ = true;
    return read();
  }
  error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  stream_.expires_after(shared_.limits.handshake);
  linger();
}

void http_session::linger() {
  // To close with unread input would reset the connection, and the peer could lose the answer.
  if (!place_) return;
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(4096), [self = shared_from_this()](error_code ec, std::size_t bytes) {
    self->lingered_ += bytes;
    if (ec || self->lingered_ > most_lingered_bytes) return self->finish();
    self->linger();
  });
}

void http_session::finish() {
  if (pending_) pending_->detach();
  answer_timer_.cancel();
  if (!place_) return;
  error_code ignored;
  stream_.socket().close(ignored);
  place_.reset();
}

} // namespace parley::net
