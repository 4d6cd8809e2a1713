#include "net/http/completion_session.hpp"

#include "base/assert.hpp"
#include "net/http/transfer_deadline.hpp"

#include <chrono>
#include <cstdio>
#include <utility>

namespace parley::net {
namespace {

constexpr std::string_view stream_head = "HTTP/1.1 200 OK\r\n"
                                         "Server: parley\r\n"
                                         "Content-Type: text/event-stream\r\n"
                                         "Cache-Control: no-store\r\n"
                                         "Transfer-Encoding: chunked\r\n"
                                         "Connection: close\r\n\r\n";
constexpr std::string_view last_chunk = "0\r\n\r\n";

std::string chunk(std::string_view bytes) {
  std::array<char, 20> size{};
  std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
  return std::string(size.data()).append(bytes).append("\r\n");
}

std::string whole(unsigned status, std::string_view body) {
  const auto words = http::obsolete_reason(static_cast<http::status>(status));
  std::string out = "HTTP/1.1 " + std::to_string(status) + " " + std::string(words.data(), words.size());
  out += "\r\nServer: parley\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nConnection: close\r\n";
  if (status == 429 || status == 503) out += "Retry-After: 1\r\n";
  out += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  return out.append(body);
}

std::int64_t unix_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

} // namespace

completion_session::completion_session(stream&& from, connections::slot place,
                                       std::shared_ptr<admission::reservation> reservation, service& shared)
    : stream_(std::move(from)), strand_(stream_.get_executor()),
      goodbye_timer_(strand_), held_{std::move(place), std::move(reservation)}, shared_(shared) {}

completion_session::~completion_session() {
  finish();
}

void completion_session::run(protocol::openai_request request, actors::connection_info info,
                             std::optional<byte_budget::share> body) {
  body_ = std::move(body);
  held_.take_over(weak_from_this(), strand_, shared_.limits, shared_);
  talk_.emplace(std::move(request), unix_s());
  stream_.plain().expires_never();
  stream_.hold_little_unsent();
  held_.handle = shared_.core.admit(std::move(info), held_.link);
  follow(talk_->begin());
  watch();
}

void completion_session::cut() {
  asio::post(strand_, [self = weak_from_this()] {
    if (const auto live = self.lock()) live->finish();
  });
}

/// Reads only to notice when the client disconnects; it should send nothing more.
void completion_session::watch() {
  stream_.async_read_some(asio::buffer(ignored_), [self = shared_from_this()](error_code ec, std::size_t) {
    if (self->finished_) return;
    if (ec) return self->finish();
    self->watch();
  });
}

void completion_session::on_ring() {
  while (!finished_ && !writing_) {
    if (std::exchange(frame_held_, false)) held_.link->written();
    const client_channel::work work = held_.link->next();
    if (work.write) {
      frame_held_ = true;
      PARLEY_ASSERT(talk_, "a session answers what was asked");
      follow(talk_->on_frame(*work.write));
    } else {
      if (work.close && !answered_) fail({503, "service_unavailable", "the session ended: " + work.close->reason});
      return;
    }
  }
}

void completion_session::follow(protocol::openai_step&& step) {
  if (!step.to_session.empty()) tell_session(std::move(step.to_session));
  if (answered_) return;
  if (step.fault) return fail(*step.fault);
  if (step.to_client.empty()) return;
  answered_ = step.over;
  PARLEY_ASSERT(talk_, "a session answers what was asked");
  if (!talk_->streaming()) return write(whole(200, step.to_client));
  std::string bytes = std::exchange(began_, true) ? "" : std::string(stream_head);
  bytes += chunk(step.to_client);
  if (step.over) bytes += last_chunk;
  write(std::move(bytes));
}

void completion_session::tell_session(std::string frame) {
  held_.link->spend(frame.size());
  held_.handle->text(std::move(frame));
}

void completion_session::fail(const protocol::openai_fault& fault) {
  answered_ = true;
  if (!began_) status_ = fault.status;
  const std::string body = protocol::encode_openai_error(fault);
  write(began_ ? chunk("data: " + body + "\n\n") + std::string(last_chunk) : whole(fault.status, body));
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
  if (answered_) return say_goodbye();
  on_ring();
}

void completion_session::say_goodbye() {
  shared_.counted.answered(status_);
  goodbye_timer_.expires_after(shared_.limits.close);
  goodbye_timer_.async_wait([self = shared_from_this()](error_code gone) {
    if (!gone) self->finish();
  });
  if (stream_.secure()) return stream_.async_shutdown([self = shared_from_this()](error_code) { self->finish(); });
  error_code ignored;
  stream_.plain().socket().shutdown(tcp::socket::shutdown_send, ignored);
}

void completion_session::finish() {
  if (std::exchange(finished_, true)) return;
  goodbye_timer_.cancel();
  error_code ignored;
  stream_.plain().socket().close(ignored);
  held_.let_go();
}

} // namespace parley::net
