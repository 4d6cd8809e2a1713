#include "net/http/http_session.hpp"

#include "base/assert.hpp"
#include "net/http/completion_session.hpp"
#include "net/http/realtime_dialect.hpp"
#include "net/http/request_facts.hpp"
#include "net/http/transfer_deadline.hpp"
#include "net/logger.hpp"
#include "net/routes/refusals.hpp"
#include "net/routes/secret_routes.hpp"
#include "net/subprotocol.hpp"
#include "net/target.hpp"
#include "net/text.hpp"
#include "net/websocket/websocket_session.hpp"
#include "protocol/call/call_request.hpp"
#include "protocol/openai/completions/request.hpp"
#include "protocol/openai/completions/talk.hpp"

#include <boost/asio/ssl/error.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <optional>
#include <span>
#include <utility>

namespace parley::net {
namespace {

constexpr std::size_t most_lingered_bytes = 1u << 20;
constexpr std::size_t large_body_bytes = 256u << 10;
constexpr std::size_t small_answer_bytes = 16u << 10; ///< about what a connection holds for requests anyway
constexpr std::string_view completions_path = "/v1/chat/completions";
constexpr std::string_view calls_path = "/v1/realtime/calls";
constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";

protocol::openai_fault openai_fault_of(const protocol::error& why) {
  return protocol::openai_fault_of(protocol::traits(why.code).wire, why.message);
}

/// What OpenSSL says if a handshake begins with the name of a common method.
bool is_plain_http(error_code ec) {
  return ec.category() == asio::error::get_ssl_category() &&
         ERR_GET_REASON(static_cast<unsigned long>(ec.value())) == SSL_R_HTTP_REQUEST;
}

} // namespace

http_session::http_session(tcp::socket&& socket, peer from, connections::slot place, service& shared)
    : stream_(std::move(socket)), strand_(stream_.get_executor()), answer_timer_(strand_),
      buffer_(shared.limits.header_bytes + 4096), place_(std::move(place)), shared_(shared), peer_(std::move(from)) {}

http_session::http_session(stream&& from, peer who, connections::slot place, service& shared, std::string_view came)
    : stream_(std::move(from)), strand_(stream_.get_executor()), answer_timer_(strand_),
      buffer_(shared.limits.header_bytes + 4096), place_(std::move(place)), shared_(shared), peer_(std::move(who)),
      taken_over_(true) {
  buffer_.commit(asio::buffer_copy(buffer_.prepare(came.size()), asio::buffer(came)));
}

http_session::~http_session() {
  finish();
}

void http_session::run() {
  asio::dispatch(strand_, [self = shared_from_this()] {
    self->place_->move_to(self->weak_from_this());
    self->shared_.tls.get() && !self->taken_over_ ? self->secure() : self->read();
  });
}

void http_session::secure() {
  stream_.plain().expires_after(shared_.limits.handshake);
  const auto tls = shared_.tls.get(); // OpenSSL keeps its part of it as long as the connection
  stream_.async_secure(*tls, [self = shared_from_this()](error_code ec) {
    if (!ec) return self->read();
    log()->debug("no TLS with {}: {}", self->peer_.address, ec.message());
    if (is_plain_http(ec)) return self->refuse_plain();
    self->finish();
  });
}

/// The client speaks plain HTTP at a port with TLS. Nothing but this answer is plain.
void http_session::refuse_plain() {
  static const std::string answer = [] {
    const auto reply = error_reply(400, "tls_required", "this port speaks https");
    return written(head_of(reply, {}, reply.body.size())) + std::string(reply.body.text());
  }();
  shared_.counted.answered(400);
  stream_.leave_tls();
  stream_.plain().expires_after(shared_.limits.handshake);
  asio::async_write(stream_, asio::buffer(answer), [self = shared_from_this()](error_code ec, std::size_t) {
    ec ? self->finish() : self->say_goodbye();
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

http_session::request_parser& http_session::parser() {
  PARLEY_ASSERT(parser_, "a request is read, or was");
  return *parser_;
}

const http::request<http::string_body>& http_session::request() {
  return parser().get();
}

/// Gives this connection's place to the session that takes over the connection.
connections::slot http_session::leave() {
  PARLEY_ASSERT(place_, "a connection that is still there");
  auto place = std::move(*place_);
  place_.reset();
  return place;
}

void http_session::read() {
  if (!place_) return;
  auto& parser = parser_.emplace();
  parser.header_limit(static_cast<std::uint32_t>(shared_.limits.header_bytes));
  // Sized for the largest request; once known, other requests get lower limits.
  parser.body_limit(std::max(shared_.limits.body_bytes, shared_.limits.chat_message_bytes));
  stream_.plain().expires_after(response_ ? shared_.limits.keep_alive : shared_.limits.handshake);
  http::async_read_header(stream_, buffer_, parser,
                          [self = shared_from_this()](error_code ec, std::size_t) { self->on_header(ec); });
}

void http_session::on_header(error_code ec) {
  idle_ = false;
  if (!place_) return; // cut meanwhile
  client_ = peer_;
  if (ec) return refuse(ec);
  const auto& request = this->request();
  client_ = shared_.proxies.client_of(peer_, join(request, "X-Forwarded-For"));
  if (auto tidied = tidy_target(request.target())) parser().get().target(*tidied);
  if (auto fault = head_fault(request)) return write(std::move(*fault), false);
  const bool posted = request.method() == http::verb::post;
  if (posted && split_target(request.target()).path == completions_path) return admit_completion();
  if (posted && split_target(request.target()).path == calls_path && shared_.calls) return admit_call();
  if (parser().content_length().value_or(0) > shared_.limits.body_bytes) return refuse(http::error::body_limit);
  parser().body_limit(shared_.limits.body_bytes);
  stream_.plain().expires_after(shared_.limits.handshake);
  ask_for_body(&http_session::read_body);
}

/// Asks for the body if the client waits for that, then goes on with `next`.
void http_session::ask_for_body(void (http_session::*next)()) {
  // Where part of the body has come, the client has not waited.
  if (!waits_for_continue(request()) || parser().is_done() || buffer_.size() > 0) return (this->*next)();
  asio::async_write(stream_, asio::buffer(go_on), [self = shared_from_this(), next](error_code ec, std::size_t) {
    if (ec || !self->place_) return self->finish();
    ((*self).*next)();
  });
}

void http_session::read_body() {
  http::async_read(stream_, buffer_, parser(),
                   [self = shared_from_this()](error_code ec, std::size_t) { self->on_request(ec); });
}

/// Admits the request, or returns the refusal.
std::optional<access_control::entry> http_session::let_in(const credentials& from, access_control::visit why,
                                                          http_reply (*refused)(refusal, std::string_view)) {
  auto entry = shared_.entrance.let_in(from, std::chrono::steady_clock::now(), why);
  if (!entry.refused) return entry;
  shared_.counted.refused(*entry.refused);
  if (entry.refused == refusal::origin) log_refused_page(from);
  if (const auto more = shared_.refusals.pass(std::chrono::steady_clock::now()))
    log()->info("refused {}{}{}: {} ({} more in the last minute)", client_.address,
                entry.key.empty() ? "" : " with key ", entry.key, words_for(*entry.refused), *more);
  if (!entry.spent) {
    write(refused(*entry.refused, {}), false);
    return std::nullopt;
  }
  auto reply = refused(*entry.refused, words_for(*entry.spent));
  const auto left_s = entry.spent->renews_at - shared_.entrance.usage().now();
  reply.retry_after_s = std::max<std::int64_t>(left_s, 1);
  write(std::move(reply), false);
  return std::nullopt;
}

/// Logged because the operator can do something about it; the user of the page cannot.
void http_session::log_refused_page(const credentials& from) {
  const auto more = shared_.refused_pages.pass(std::chrono::steady_clock::now());
  if (!more) return;
  log()->warn("refused a page of {} that reached this server as {}: auth.allowed_origins has the pages that may, "
              "server.names the names of this server ({} more in the last minute)",
              for_log(from.origin), for_log(from.host), *more);
}

actors::connection_info http_session::connection_of(std::string key) const {
  actors::connection_info info;
  info.remote = client_.address;
  info.group = client_.group;
  info.key = std::move(key);
  info.account = shared_.entrance.usage().account_of(info.key);
  info.accepted = std::chrono::steady_clock::now();
  return info;
}

/// The trace that the request at hand belongs to, which its answer names; null = there is none.
std::shared_ptr<const protocol::trace::scope> http_session::trace() {
  if (!shared_.traces) return nullptr;
  auto found = shared_.traces->begin(join(request(), "traceparent"), join(request(), "tracestate"));
  traceparent_ = found->traceparent();
  return found;
}

void http_session::admit_completion() {
  // Nobody may send a hundred megabytes before we know who it is.
  const auto& request = this->request();
  if (shared_.all.draining())
    return write(completion_error({503, "service_unavailable", "the server is shutting down"}), false);
  const std::string subprotocols;
  auto entry = let_in(credentials_of(request, subprotocols, client_), {}, completion_refusal);
  if (!entry) return;
  owner_ = actors::owner_of(connection_of(entry->key));
  entry_.emplace(std::move(*entry));
  parser().body_limit(shared_.limits.chat_message_bytes);
  if (parser().content_length().value_or(0) > shared_.limits.chat_message_bytes) return refuse(http::error::body_limit);
  body_deadline_ = {std::chrono::steady_clock::now(), shared_.limits.ping};
  stream_.plain().expires_at(body_deadline_.at());
  ask_for_body(&http_session::read_completion);
}

void http_session::read_completion() {
  if (!place_) return;
  if (!shared_.has_room(received_, owner_, request().body().size()))
    return write(server_busy("too many large requests at once"), false);
  if (parser().is_done()) return on_completion();
  stream_.plain().expires_at(body_deadline_.at());
  http::async_read_some(stream_, buffer_, parser(), [self = shared_from_this()](error_code ec, std::size_t bytes) {
    if (ec) return self->refuse(ec);
    self->body_deadline_.received(bytes, std::chrono::steady_clock::now());
    self->read_completion();
  });
}

/// Parsing a body of a hundred megabytes takes a tenth of a second, too long for an I/O thread.
void http_session::on_completion() {
  auto body = std::move(parser().get().body());
  if (body.size() <= large_body_bytes) return begin_completion(protocol::read_openai_request(std::move(body)));
  on_reader([self = shared_from_this(), body = std::move(body)]() mutable {
    auto request =
        std::make_shared<protocol::result<protocol::openai_request>>(protocol::read_openai_request(std::move(body)));
    asio::post(self->strand_, [self, request] {
      if (self->place_) self->begin_completion(std::move(*request)); // else it was cut in the meantime
    });
  });
}

/// Runs `work`, which posts what follows to the strand, where it may wait for the disk or take long. If it throws, the
/// connection is cut.
template<class Work>
void http_session::on_reader(Work work) {
  asio::post(shared_.body_readers, [self = shared_from_this(), work = std::move(work)]() mutable noexcept {
    try {
      work();
    } catch (...) {
      try { // what it throws is logged there
        asio::post(self->strand_, [failure = std::current_exception()] { std::rethrow_exception(failure); });
      } catch (...) { // out of memory: the connection goes with its last reference
        std::fputs("the body of a request or an answer failed\n", stderr);
      }
    }
  });
}

void http_session::begin_completion(protocol::result<protocol::openai_request> request) {
  if (!request) return write(completion_error(openai_fault_of(request.error())), may_go_on());
  PARLEY_ASSERT(entry_, "a completion is read for a client that was let in");
  auto entry = std::move(*entry_);
  entry_.reset();
  auto info = connection_of(std::move(entry.key));
  info.mode = "chat";
  info.dialect = "completions";
  info.transport = "http";
  info.trace = trace();
  auto on = terms(may_go_on() && buffer_.size() == 0);
  auto next = std::make_shared<completion_session>(
      std::move(stream_), peer_, leave(), std::make_shared<admission::reservation>(std::move(entry.reservation)),
      shared_, std::move(on));
  next->run(std::move(*request), std::move(info), std::exchange(received_, std::nullopt));
}

void http_session::on_request(error_code ec) {
  if (!place_) return; // cut meanwhile
  if (ec) return refuse(ec);
  if (entry_) return begin_call();
  const auto path = split_target(request().target()).path;
  if (is_realtime_path(path) && websocket::is_upgrade(request())) return upgrade();
  route();
}

/// Nobody may ask for ICE and DTLS before we know who it is.
void http_session::admit_call() {
  if (shared_.openai == config::openai_door::off) return write(realtime_off(), false);
  if (shared_.all.draining()) return write(server_busy("the server is shutting down"), false);
  auto ready = shared_.core.ready();
  if (!ready.ready) return write(server_busy(std::move(ready.reason)), false);
  if (ready.wait_s > shared_.limits.slot_wait_s) return write(server_busy("all slots are taken"), false);
  const std::string subprotocols;
  auto entry = let_in(credentials_of(request(), subprotocols, client_), {.realtime = true}, completion_refusal);
  if (!entry) return;
  const auto most = std::min(shared_.limits.body_bytes, protocol::call::most_request_bytes);
  if (parser().content_length().value_or(0) > most) return refuse(http::error::body_limit);
  entry_.emplace(std::move(*entry));
  parser().body_limit(most);
  stream_.plain().expires_after(shared_.limits.handshake);
  ask_for_body(&http_session::read_body);
}

void http_session::begin_call() {
  PARLEY_ASSERT(entry_, "a call is read for a client that was let in");
  auto entry = std::move(*entry_);
  entry_.reset();
  auto asked = protocol::call::read_call_request(header(request(), http::field::content_type), request().body());
  if (!asked) {
    const auto& why = asked.error();
    return write(completion_error({400, why.code, why.message, why.param}), may_go_on());
  }
  auto info = connection_of(std::move(entry.key));
  auto& realtime = info.realtime.emplace();
  realtime.call = true;
  realtime.model = query_value(split_target(request().target()).query, "model").value_or("parley");
  realtime.session = asked->session ? std::move(asked->session) : std::move(entry.session);
  info.starts = shared_.entrance.starts_of(info.group, info.key);
  const auto reservation = std::make_shared<admission::reservation>(std::move(entry.reservation));
  info.reservation = reservation;
  info.trace = trace();
  await_reply();
  shared_.calls->accept(std::move(asked->what), std::move(info), reservation,
                        [to = pending_](http_reply reply) { to->give(std::move(reply)); });
}

void http_session::refuse(error_code why) {
  // Only a peer that sent something wrong gets an answer, not one that is gone or silent.
  static const auto& http_errors = http::make_error_code(http::error::bad_method).category();
  if (why.category() != http_errors || why == http::error::end_of_stream || why == http::error::partial_message)
    return finish();
  write(unreadable(why), false);
}

/// Why this client may not follow that call.
std::optional<http_reply> http_session::may_not_follow(const std::string& call, const credentials& from) {
  const auto who = shared_.entrance.permissions_of(from).who;
  if (!who) return completion_refusal(refusal::key);
  switch (shared_.calls->of(call, *who)) {
  case call_acceptor::standing::owner: return std::nullopt;
  case call_acceptor::standing::unknown: return no_such_call();
  case call_acceptor::standing::forbidden: return call_of_another();
  }
  return no_such_call();
}

void http_session::upgrade() {
  const auto& request = this->request();
  if (auto fault = upgrade_fault(request, buffer_.size() > 0)) return write(std::move(*fault), false);
  const std::string subprotocols = join(request, http::field::sec_websocket_protocol);
  const auto [path, query] = split_target(request.target());
  auto realtime = realtime_request_of(path, query, subprotocols, header(request, "OpenAI-Beta"), shared_.openai);
  if (realtime && shared_.openai == config::openai_door::off) return write(realtime_off(), false);
  if (shared_.all.draining())
    return write(realtime ? server_busy("the server is shutting down")
                          : error_reply(503, "service_unavailable", "the server is shutting down"),
                 false);
  const auto from = credentials_of(request, subprotocols, client_);
  const auto followed = realtime && shared_.calls ? query_value(query, "call_id") : std::nullopt;
  if (followed) {
    if (auto fault = may_not_follow(*followed, from)) return write(std::move(*fault), false);
    realtime->follows = *followed;
  } else if (realtime) {
    auto ready = shared_.core.ready();
    if (!ready.ready) return write(server_busy(std::move(ready.reason)), false);
    if (ready.wait_s > shared_.limits.slot_wait_s) return write(server_busy("all slots are taken"), false);
  }
  // Only Parley's own protocol resumes sessions. In the others a token means nothing, and excuses from no limit.
  auto token = realtime ? std::nullopt : query_value(query, "resume_token");
  auto entry = let_in(from, {.returning = token.has_value() || followed, .realtime = true},
                      realtime ? completion_refusal : reply_to);
  if (!entry) return;
  auto info = connection_of(std::move(entry->key));
  info.mode = query_value(query, "mode");
  info.session_id = query_value(query, "session_id");
  info.resume_token = std::move(token);
  info.last_event_id = query_value(query, "last_event_id");
  bool undecided = !realtime && is_undecided(path, query, shared_.openai);
  if (undecided && entry->session) { // only clients of OpenAI's have such keys
    realtime.emplace();
    undecided = false;
  }
  if (realtime) realtime->session = std::move(entry->session);
  info.starts = shared_.entrance.starts_of(info.group, info.key);
  info.realtime = std::move(realtime);
  if (!info.resume_token) info.trace = trace(); // a session that exists keeps its own
  const auto reservation = std::make_shared<admission::reservation>(std::move(entry->reservation));
  info.reservation = reservation;
  auto next = std::make_shared<websocket_session>(std::move(stream_), leave(), reservation, shared_);
  next->run(request, std::move(info), choose_subprotocol(subprotocols), undecided);
}

void http_session::route() {
  const auto& request = this->request();
  const std::string subprotocols = join(request, http::field::sec_websocket_protocol);
  const credentials from = credentials_of(request, subprotocols, client_);
  if (changes_something(request.method()) && !shared_.entrance.may_come_from(from)) {
    log_refused_page(from);
    return write(reply_to(refusal::origin), may_go_on());
  }
  http_request plain;
  plain.method = request.method_string();
  plain.path = split_target(request.target()).path;
  if (asks_for_secret(plain.method, plain.path) && !let_in(from, {.returning = true}, completion_refusal)) return;
  plain.body = request.body();
  plain.if_none_match = header(request, http::field::if_none_match);
  plain.may = shared_.entrance.permissions_of(from);
  owner_ = actors::owner_of(connection_of(plain.may.who ? plain.may.who->key : ""));
  plain.has_room = shared_.answers.has_room(owner_);

  await_reply();
  shared_.routes.route(plain, [to = pending_](http_reply reply) { to->give(std::move(reply)); });
}

/// From now on, `pending_` takes the answer, from any thread.
void http_session::await_reply() {
  pending_ = std::make_shared<pending_reply>([self = weak_from_this(), strand = strand_] {
    asio::post(strand, [self] {
      if (const auto live = self.lock()) live->deliver();
    });
  });
  answer_timer_.expires_after(shared_.limits.handshake);
  // The pending wait also keeps the connection alive until its answer arrives.
  answer_timer_.async_wait([self = shared_from_this(), late = pending_](error_code ec) {
    if (ec) return;
    late->give(error_reply(504, "timeout", "no answer from inside the server"));
    self->deliver();
  });
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
  write(std::move(reply), may_go_on());
}

/// What the answer to the request at hand depends on.
answer_terms http_session::terms(bool keep_alive) {
  const auto& request = this->request();
  answer_terms out{request.version() < 11, keep_alive};
  out.traceparent = std::exchange(traceparent_, {});
  const auto origin = header(request, http::field::origin);
  if (origin.empty() || !is_for_pages(split_target(request.target()).path)) return out;
  const std::string subprotocols;
  if (!shared_.entrance.may_come_from(credentials_of(request, subprotocols, client_))) return out;
  out.page = origin;
  out.asked_headers = header(request, http::field::access_control_request_headers);
  return out;
}

/// Whether the connection can serve another request, now that this one has been read completely.
bool http_session::may_go_on() {
  return request().keep_alive() && !shared_.all.draining();
}

void http_session::write(http_reply reply, bool keep_alive) {
  if (const auto held = reply.body.held_bytes(); held > small_answer_bytes) {
    share_ = shared_.answers.take(owner_, held);
    if (!share_) reply = no_room_reply();
  }
  shared_.counted.answered(reply.status);
  auto& response = response_.emplace(head_of(reply, terms(keep_alive), reply.body.size()));
  if (request().method() != http::verb::head) body_ = std::move(reply.body);
  if (body_.size() > large_body_bytes) stream_.hold_little_unsent();
  writing_.emplace(response);
  write_begun_ = std::chrono::steady_clock::now();
  written_ = 0;
  read_ = 0;
  if (body_.size() > 0 && body_.file()) return read_piece(keep_alive);
  give_piece(body_.text(), false);
  write_some(keep_alive);
}

/// The next bytes of the body; `more` follow.
void http_session::give_piece(std::string_view bytes, bool more) {
  PARLEY_ASSERT(response_, "an answer is being written");
  auto& body = response_->body();
  body.data = bytes.empty() ? nullptr : const_cast<char*>(bytes.data()); // only read from
  body.size = bytes.size();
  body.more = more;
}

/// Reads the next piece of a file on a thread that may wait for the disk.
void http_session::read_piece(bool keep_alive) {
  piece_.resize(body_.held_bytes());
  on_reader([self = shared_from_this(), keep_alive] {
    const auto left = self->body_.size() - self->read_;
    const std::span<char> wanted(self->piece_.data(), std::min<std::uint64_t>(left, self->piece_.size()));
    const auto got = self->body_.file()->read(self->read_, wanted);
    asio::post(self->strand_, [self, keep_alive, whole = got == wanted.size(), got] {
      if (!self->place_ || !whole) return self->finish(); // cut in the meantime, or the file has shrunk
      self->read_ += got;
      self->give_piece({self->piece_.data(), got}, self->read_ < self->body_.size());
      self->write_some(keep_alive);
    });
  });
}

void http_session::write_some(bool keep_alive) {
  PARLEY_ASSERT(writing_ && response_, "an answer is being written");
  stream_.plain().expires_at(
      transfer_deadline(write_begun_, std::chrono::steady_clock::now(), written_, shared_.limits.handshake));
  http::async_write_some(stream_, *writing_, [self = shared_from_this(), keep_alive](error_code ec, std::size_t bytes) {
    self->written_ += bytes;
    if (ec == http::error::need_buffer) return self->read_piece(keep_alive);
    if (ec || self->writing_->is_done()) return self->on_write(ec, keep_alive);
    self->write_some(keep_alive);
  });
}

void http_session::on_write(error_code ec, bool keep_alive) {
  if (ec || !place_) return finish();
  body_ = {};
  piece_ = {};
  share_.reset();
  if (keep_alive && !shared_.all.draining()) {
    idle_ = true;
    return read();
  }
  say_goodbye();
}

void http_session::say_goodbye() {
  stream_.plain().expires_after(shared_.limits.handshake);
  if (stream_.secure()) return stream_.async_shutdown([self = shared_from_this()](error_code) { self->finish(); });
  error_code ignored;
  stream_.plain().socket().shutdown(tcp::socket::shutdown_send, ignored);
  linger();
}

void http_session::linger() {
  // Closing with unread input would reset the connection, and the peer might lose the answer.
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
  stream_.plain().socket().close(ignored);
  place_.reset();
}

} // namespace parley::net
