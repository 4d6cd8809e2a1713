#include "client/probe_session.hpp"

#include "client/latencies.hpp"
#include "client/printable.hpp"

#include <cmath>
#include <iomanip>
#include <ostream>
#include <random>
#include <utility>

namespace parley::client {
namespace {

constexpr std::chrono::seconds answer_time{150}; ///< longer than a server may spend on a chat turn (docs/protocol.md 8)
constexpr std::chrono::seconds closing_time{15};

} // namespace

probe_session::probe_session(std::vector<server_url> urls, std::ostream& out, std::ostream& err)
    : out_(out), err_(err), socket_(io_.get_executor(), std::move(urls), 0, std::random_device()(),
                                    {.opened = [this] { expect_answer(); },
                                     .event = [this](std::string_view frame, const auto&) { on_text(frame); },
                                     .unreadable = [this](std::string_view frame) { on_text(frame); },
                                     .lost = [this] { on_lost(); },
                                     .resumed = [this](std::int64_t resent) { on_resumed(resent); },
                                     .ended = [this](const auto& how) { on_ended(how); }}),
      overdue_(io_.get_executor()) {}

int probe_session::run(std::string_view mode) {
  socket_.connect(mode);
  io_.run();
  return status_;
}

void probe_session::on_text(std::string_view frame) {
  const auto event = read_server_message(frame);
  if (!event) return fail("the server sent something that is not an event");
  using type = server_event_type;
  switch (event->type) {
  case type::queued:
  case type::queue_update: return tell_place(*event);
  case type::queue_done: socket_.send(init_frame()); return expect_answer();
  case type::created: return on_created(*event);
  case type::listen:
  case type::spoken:
  case type::response_done: return on_output(*event);
  case type::go_away:
    return print_event("session.go_away",
                       printable_line(event->reason) + ", " + std::to_string(event->time_left_ms) + " ms left");
  case type::closed:
    print_event("session.closed", printable_line(event->reason));
    closed_ = true;
    expect_end();
    if (!close_asked_) fail("the server ended the session");
    return;
  case type::error: return fail(printable_line(event->error_code + ": " + event->error_message));
  case type::tool_call:
  case type::tool_call_delta:
  case type::resumed:
  case type::other: return print_event(printable_line(event->type_name), "");
  }
}

void probe_session::on_lost() {
  lost_ = std::chrono::steady_clock::now();
  print_event("connection lost", "");
}

void probe_session::on_resumed(std::int64_t resent) {
  print_event("session.resumed", "after " + seconds_text(std::chrono::steady_clock::now() - lost_) + ", " +
                                     std::to_string(resent) + " events again");
}

void probe_session::on_ended(const ws_client::ending& how) {
  gone_ = true;
  overdue_.cancel();
  if (!how.error.empty() && !closed_) return fail(how.error);
  if (!closed_ && status_ == 0) fail("the server closed the connection with code " + std::to_string(how.code));
}

void probe_session::print_event(std::string_view event, std::string_view what) {
  out_ << std::left << std::setw(20) << event << what << std::endl;
}

void probe_session::tell_place(const server_message& event) {
  overdue_.cancel(); // waiting in a queue may take any time
  print_event(event.type_name, "position " + std::to_string(event.position) + " of " +
                                   std::to_string(event.queue_length) + ", about " +
                                   std::to_string(std::lround(event.estimated_wait_s)) + " s");
}

void probe_session::fail(std::string_view why) {
  if (status_ != 0) return; // keep the first reason, which is the useful one
  status_ = 1;
  err_ << "parley probe: " << why << std::endl;
  if (!stopped()) close_session("user_stop");
}

void probe_session::close_session(std::string_view reason) {
  if (std::exchange(close_asked_, true)) return;
  socket_.send(encode_close(reason));
  expect_end();
}

void probe_session::expect_end() {
  overdue_.after(closing_time, [this] {
    fail("the server does not close the connection");
    io_.stop();
  });
}

void probe_session::expect_answer() {
  if (stopped()) return;
  overdue_.after(answer_time, [this] { fail("no answer for " + std::to_string(answer_time.count()) + " s"); });
}

} // namespace parley::client
