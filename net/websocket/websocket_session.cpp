#include "net/websocket/websocket_session.hpp"

#include "net/service.hpp"
#include "protocol/openai/realtime/client_event.hpp"

#include <chrono>
#include <utility>

namespace parley::net {
namespace {

/// How long a client that speaks OpenAI's Realtime API takes at most to send its first event; others get their first
/// event so much later (docs/openai.md).
constexpr std::chrono::milliseconds decision_time{150};

} // namespace

websocket_session::websocket_session(stream&& from, connections::slot place,
                                     std::shared_ptr<admission::reservation> reservation, service& shared)
    : ws_(std::move(from)), strand_(ws_.get_executor()), heart_(strand_), closing_timer_(strand_),
      decision_timer_(strand_), held_{std::move(place), std::move(reservation)}, shared_(shared) {}

websocket_session::~websocket_session() {
  finish();
}

void websocket_session::run(const http::request<http::string_body>& upgrade, actors::connection_info info,
                            const std::optional<std::string>& subprotocol, bool undecided) {
  auto limits = shared_.limits;
  if (info.resume_token) limits.outbox_bytes += limits.resume_bytes;
  owner_ = actors::owner_of(info);
  held_.take_over(weak_from_this(), strand_, limits, shared_, owner_);
  const bool chat = info.mode == "chat";
  ws_.read_message_max(chat ? shared_.limits.chat_message_bytes : shared_.limits.duplex_message_bytes);
  ws_.on_control([this](websocket::frame_type kind) { on_control(kind); });
  ws_.plain().expires_after(shared_.limits.handshake);
  ws_.async_accept(upgrade, subprotocol,
                   [self = shared_from_this(), info = std::move(info), undecided](error_code ec) mutable {
                     self->on_accept(ec, std::move(info), undecided);
                   });
}

void websocket_session::cut() {
  asio::post(strand_, [self = weak_from_this()] {
    if (const auto live = self.lock()) live->finish();
  });
}

void websocket_session::on_accept(error_code ec, actors::connection_info info, bool undecided) {
  if (ec || finished_) return finish();
  ws_.plain().expires_never();
  if (undecided)
    wait_for_first_event(std::move(info));
  else
    held_.handle = shared_.admit(std::move(info), held_.link);
  tick();
  read();
}

void websocket_session::wait_for_first_event(actors::connection_info info) {
  undecided_ = std::make_unique<actors::connection_info>(std::move(info));
  decision_timer_.expires_after(decision_time);
  decision_timer_.async_wait([self = shared_from_this()](error_code ec) {
    if (!ec && !self->finished_) self->decide({});
  });
}

void websocket_session::decide(std::string_view first_event) {
  if (!undecided_) return;
  decision_timer_.cancel();
  auto info = std::move(*undecided_);
  undecided_.reset();
  // A longer message is no first event of that API: scanning it would take this thread too long.
  const bool is_short = first_event.size() <= actors::small_message_bytes;
  if (is_short && protocol::openai::realtime::is_first_update(first_event)) info.realtime.emplace();
  held_.handle = shared_.admit(std::move(info), held_.link);
}

void websocket_session::read() {
  if (reading_ || is_over()) return;
  if (!may_read_ && !discarding_ && buffer_.size() == 0) return beat_.not_reading();
  reading_ = true;
  const std::span<char> room = buffer_.prepare(ws_.is_message_done() ? 0 : ws_.read_size_hint());
  ws_.async_read_some(room, asio::bind_cancellation_slot(end_of_reading_.slot(),
                                                         [self = shared_from_this()](error_code ec, std::size_t bytes) {
                                                           self->on_read(ec, bytes);
                                                         }));
}

void websocket_session::on_read(error_code ec, std::size_t bytes) {
  reading_ = false;
  if (is_over()) return;
  if (ec) return finish();
  if (!discarding_ && ws_.got_binary()) {
    discarding_ = true;
    decide({});
    held_.handle->binary();
  }
  if (discarding_) {
    buffer_.clear();
  } else {
    const auto now = std::chrono::steady_clock::now();
    if (buffer_.size() == 0) message_deadline_ = {now, shared_.limits.ping};
    message_deadline_.received(bytes, now);
    buffer_.commit(bytes);
    if (!shared_.has_room(message_, owner_, buffer_.size()))
      refuse_message();
    else if (ws_.is_message_done())
      on_message();
  }
  read();
}

void websocket_session::refuse_message() {
  buffer_.clear();
  message_.reset();
  discarding_ = true;
  decide({});
  held_.link->close(1013, "too many large messages at once");
}

void websocket_session::on_message() {
  std::string text = buffer_.take();
  decide(text);
  may_read_ = held_.link->spend(text.size(), std::exchange(message_, std::nullopt));
  held_.handle->text(std::move(text));
}

void websocket_session::on_control(websocket::frame_type kind) {
  if (kind == websocket::frame_type::pong) beat_.ponged();
  if (kind == websocket::frame_type::close) start_closing();
}

void websocket_session::on_ring() {
  if (is_over()) return;
  client_channel::work work = held_.link->next();
  may_read_ = work.may_read;
  if (work.chat) ws_.read_message_max(shared_.limits.chat_message_bytes);
  if (work.closing) {
    discarding_ = true;
    start_closing();
  }
  if (work.write) write(std::move(work.write));
  if (work.close) shake_hands(*work.close);
  read();
}

void websocket_session::write(text_frame text) {
  in_flight_ = std::move(text);
  ws_.async_write(*in_flight_, [self = shared_from_this()](error_code ec, std::size_t) { self->on_write(ec); });
}

void websocket_session::on_write(error_code ec) {
  in_flight_.reset();
  if (is_over()) return;
  if (ec) return finish();
  held_.link->written();
  on_ring();
}

void websocket_session::start_closing() {
  if (std::exchange(closing_, true)) return;
  closing_timer_.expires_after(shared_.limits.close);
  closing_timer_.async_wait([self = shared_from_this()](error_code ec) {
    if (!ec) self->finish();
  });
}

void websocket_session::shake_hands(const close_frame& why) {
  if (!ws_.is_open()) return; // the read that found the end closes it
  shaking_hands_ = true;
  ws_.async_close(why.code, why.reason,
                  asio::bind_cancellation_slot(end_of_closing_.slot(),
                                               [self = shared_from_this()](error_code) { self->finish(); }));
}

void websocket_session::tick() {
  heart_.expires_after(shared_.limits.ping);
  heart_.async_wait([self = shared_from_this()](error_code ec) {
    if (!ec && !self->is_over()) self->on_tick();
  });
}

void websocket_session::on_tick() {
  const bool inside_message = buffer_.size() > 0;
  if (inside_message && message_deadline_.at() <= std::chrono::steady_clock::now()) return finish();
  if (!reading_) beat_.not_reading();
  switch (beat_.tick(inside_message)) {
  case heartbeat::verdict::dead: return finish();
  case heartbeat::verdict::wait: break;
  case heartbeat::verdict::ping: ping(); break;
  }
  tick();
}

void websocket_session::ping() {
  // Does not send a second ping while one still waits behind a write.
  if (pinging_ || !ws_.is_open()) return;
  pinging_ = true;
  ws_.async_ping([self = shared_from_this()](error_code ec) {
    self->pinging_ = false;
    if (ec && !self->reading_ && !self->is_over()) self->finish();
  });
}

void websocket_session::finish() {
  if (std::exchange(finished_, true)) return;
  heart_.cancel();
  closing_timer_.cancel();
  decision_timer_.cancel();
  error_code ignored;
  ws_.plain().socket().close(ignored);
  // If a read fails while our close frame is being written, Beast makes the read wait for the close frame and the close
  // frame for the read, and neither uses the socket any more.
  end_of_closing_.emit(asio::cancellation_type::terminal);
  end_of_reading_.emit(asio::cancellation_type::terminal);
  held_.let_go();
  buffer_.clear();
}

} // namespace parley::net
