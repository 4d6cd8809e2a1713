#include "net/http/completion_session.hpp"

#include "base/assert.hpp"
#include "net/http/http_session.hpp"
#include "net/http/transfer_deadline.hpp"

#include <chrono>
#include <cstdio>
#include <utility>
#include <variant>

namespace parley::net {
namespace {

constexpr std::string_view last_chunk = "0\r\n\r\n";

std::string chunk(std::string_view bytes) {
  std::array<char, 20> size{};
  std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
  return std::string(size.data()).append(bytes).append("\r\n");
}

std::int64_t unix_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

} // namespace

completion_session::completion_session(stream&& from, peer who, connections::slot place,
                                       std::shared_ptr<admission::reservation> reservation, service& shared,
                                       answer_terms terms)
    : stream_(std::move(from)), strand_(stream_.get_executor()), end_timer_(strand_),
      peer_(std::move(who)), held_{std::move(place), std::move(reservation)}, shared_(shared),
      terms_(std::move(terms)) {}

completion_session::~completion_session() {
  finish();
}

void completion_session::run(protocol::openai_request request, actors::connection_info info,
                             std::optional<base::byte_budget::share> body) {
  body_ = std::move(body);
  held_.take_over(weak_from_this(), strand_, shared_.limits, shared_, actors::owner_of(info));
  talk_.emplace(std::move(request), unix_s());
  stream_.plain().expires_never();
  stream_.hold_little_unsent();
  info_ = std::move(info);
  follow(talk_->begin());
  watch();
}

void completion_session::cut() {
  asio::post(strand_, [self = weak_from_this()] {
    if (const auto live = self.lock()) live->finish();
  });
}

void completion_session::drain() {
  asio::post(strand_, [self = weak_from_this()] {
    if (const auto live = self.lock(); live && live->between_) live->finish();
  });
}

/// Reads to notice when the client disconnects, and for the first bytes of its next request: a read that has begun is
/// not called off, since TLS could not go on after that.
void completion_session::watch() {
  reading_ = true;
  stream_.async_read_some(asio::buffer(read_),
                          [self = shared_from_this()](error_code ec, std::size_t bytes) { self->on_bytes(ec, bytes); });
}

void completion_session::on_bytes(error_code ec, std::size_t bytes) {
  reading_ = false;
  if (finished_) return;
  if (ec) return finish();
  // The client may have read the end of the answer before we know that it is written.
  if (answered_ && goes_on()) {
    came_ = bytes;
    if (between_) pass_on();
    return;
  }
  disturbed_ = true;
  if (!writing_) watch(); // else it would have the deadline of the write
}

/// Whether the connection is kept after the answer.
bool completion_session::goes_on() const {
  return terms_.keep_alive && !disturbed_ && !shared_.all.draining();
}

void completion_session::on_ring() {
  while (!finished_ && !between_ && !writing_) {
    if (std::exchange(event_held_, false)) held_.link->written();
    const event_channel::work work = held_.link->next();
    PARLEY_ASSERT(talk_, "a session answers what was asked");
    if (work.event) {
      event_held_ = true;
      follow(talk_->on_event(*work.event));
    } else {
      if (work.close) follow(talk_->on_closed(work.close->reason));
      return;
    }
  }
}

void completion_session::follow(protocol::openai_talk::effects&& effects) {
  for (auto& effect : effects) std::visit([this](auto& each) { perform(each); }, effect);
}

void completion_session::perform(const protocol::guest::open_session&) {
  held_.handle = shared_.admit_guest(std::move(info_), held_.link);
}

void completion_session::perform(protocol::guest::to_session& effect) {
  held_.handle->say(std::move(effect.event));
}

void completion_session::perform(const protocol::guest::turn_to_session& effect) {
  held_.handle->ask(effect.turn);
}

void completion_session::perform(const protocol::guest::drop_session&) {
  held_.drop_session();
}

void completion_session::perform(const protocol::openai_reply& effect) {
  if (effect.fault) return fail(*effect.fault);
  answered_ = effect.over;
  PARLEY_ASSERT(talk_, "a session answers what was asked");
  write(talk_->streaming() ? piece(effect.text, effect.over) : whole(200, effect.text));
}

std::string completion_session::whole(unsigned status, std::string_view body) {
  status_ = status;
  terms_.keep_alive = goes_on();
  const http_reply reply{status};
  return written(head_of(reply, terms_, body.size())).append(body);
}

/// Some events of a stream, behind its head if they are the first.
std::string completion_session::piece(std::string_view events, bool last) {
  std::string out;
  if (!std::exchange(began_, true)) {
    terms_.keep_alive = goes_on() && in_chunks(terms_);
    out = written(head_of({200, {}, "text/event-stream"}, terms_, std::nullopt));
  }
  if (!in_chunks(terms_)) return out.append(events);
  out += chunk(events);
  if (last) out += last_chunk;
  return out;
}

void completion_session::fail(const protocol::openai_fault& fault) {
  answered_ = true;
  const std::string body = protocol::encode_openai_error(fault);
  write(began_ ? piece("data: " + body + "\n\n", true) : whole(fault.status, body));
}

void completion_session::write(std::string bytes) {
  out_ = std::move(bytes);
  writing_ = true;
  written_ = 0;
  write_begun_ = std::chrono::steady_clock::now();
  write_some();
}

void completion_session::write_some() {
  stream_.plain().expires_at(
      transfer_deadline(write_begun_, std::chrono::steady_clock::now(), written_, shared_.limits.handshake));
  stream_.async_write_some(asio::buffer(out_) + written_,
                           [self = shared_from_this()](error_code ec, std::size_t bytes) {
                             self->written_ += bytes;
                             if (ec || self->finished_ || self->written_ == self->out_.size())
                               return self->on_write(ec);
                             self->write_some();
                           });
}

void completion_session::on_write(error_code ec) {
  writing_ = false;
  if (finished_) return;
  if (ec) return finish();
  stream_.plain().expires_never();
  if (!answered_) {
    if (!reading_) watch();
    return on_ring();
  }
  shared_.counted.answered(status_);
  goes_on() ? wait_for_next() : say_goodbye();
}

void completion_session::wait_for_next() {
  held_.end_session(weak_from_this());
  body_.reset();
  between_ = true;
  if (!reading_) return pass_on();
  end_timer_.expires_after(shared_.limits.keep_alive);
  end_timer_.async_wait([self = shared_from_this()](error_code gone) {
    if (!gone) self->finish();
  });
}

/// Gives the connection, with what came of the next request, to a new `http_session`.
void completion_session::pass_on() {
  finished_ = true;
  end_timer_.cancel();
  PARLEY_ASSERT(held_.slot, "a connection that is still there");
  auto place = std::move(*held_.slot);
  held_.slot.reset();
  std::make_shared<http_session>(std::move(stream_), peer_, std::move(place), shared_,
                                 std::string_view(read_.data(), came_))
      ->run();
}

void completion_session::say_goodbye() {
  if (!reading_) watch();
  end_timer_.expires_after(shared_.limits.close);
  end_timer_.async_wait([self = shared_from_this()](error_code gone) {
    if (!gone) self->finish();
  });
  if (stream_.secure()) return stream_.async_shutdown([self = shared_from_this()](error_code) { self->finish(); });
  error_code ignored;
  stream_.plain().socket().shutdown(tcp::socket::shutdown_send, ignored);
}

void completion_session::finish() {
  if (std::exchange(finished_, true)) return;
  end_timer_.cancel();
  error_code ignored;
  stream_.plain().socket().close(ignored);
  held_.let_go();
  talk_.reset(); // a turn that has not been made yet is not wanted any more
}

} // namespace parley::net
