#include "client/session_socket.hpp"

#include <chrono>
#include <utility>

namespace parley::client {
namespace {

constexpr double attempt_time = 5; ///< seconds after which an attempt to come back has failed

} // namespace

session_socket::session_socket(const boost::asio::any_io_executor& executor, std::vector<server_url> urls,
                               std::size_t first, std::uint64_t seed, callbacks told)
    : executor_(executor), urls_(std::move(urls)), first_(first % urls_.size()), told_(std::move(told)),
      memory_(urls_.size(), first_), chance_(seed), timer_(executor) {}

void session_socket::connect(std::string_view mode) {
  mode_query_ = "mode=" + std::string(mode);
  open(first_, mode_query_);
}

void session_socket::send(std::shared_ptr<const std::string> frame) {
  if (leaving_) return;
  if (memory_.possible()) farewell_ = frame;
  if (socket_ && !away_) socket_->send(std::move(frame));
}

void session_socket::append(std::shared_ptr<const std::string> frame) {
  if (leaving_) return;
  memory_.sent(frame);
  if (socket_ && !away_) socket_->send(std::move(frame));
}

void session_socket::close() {
  leaving_ = true;
  if (away_) return give_up(0);
  if (socket_) socket_->close();
}

void session_socket::open(std::size_t address, const std::string& query) {
  socket_ = std::make_unique<ws_client>(
      executor_, ws_client::callbacks{.opened =
                                          [this] {
                                            if (!std::exchange(reached_, true) && told_.opened) told_.opened();
                                          },
                                      .text = [this](std::string_view frame) { take(frame); },
                                      .ended = [this](const ws_client::ending& how) { lose(how); }});
  socket_->connect(urls_[address], query);
}

void session_socket::take(std::string_view frame) {
  const auto event = glance(frame);
  if (!event) return told_.unreadable(frame);
  memory_.heard(*event);
  if (event->type == server_event_type::resumed) return resume(*event);
  if (!away_) told_.event(frame, *event); // until the return an address only says why it does not have the session
}

void session_socket::lose(const ws_client::ending& how) {
  if (!reached_ && tried_ < urls_.size()) {
    const auto address = (first_ + tried_++) % urls_.size();
    memory_ = resumption(urls_.size(), address);
    return open(address, mode_query_);
  }
  const auto next = leaving_ ? std::nullopt : memory_.next(now(), std::uniform_real_distribution<>()(chance_));
  if (!next) return away_ ? give_up(how.code) : told_.ended(how);
  if (!std::exchange(away_, true)) told_.lost();
  wait(next->wait, [this, address = next->address] { come_back(address); });
}

void session_socket::give_up(std::uint16_t code) {
  timer_.cancel();
  socket_.reset();
  told_.ended({code, "the session could not be resumed"});
}

void session_socket::come_back(std::size_t address) {
  open(address, memory_.query());
  wait(attempt_time, [this] {
    socket_.reset();
    lose({0, "no answer"});
  });
}

void session_socket::resume(const server_glance& event) {
  timer_.cancel();
  away_ = false;
  for (auto& append : memory_.missing()) socket_->send(std::move(append));
  if (farewell_) socket_->send(farewell_);
  told_.resumed(event.resent);
}

void session_socket::wait(double seconds, std::function<void()> then) {
  timer_.after(std::chrono::duration_cast<deadline_timer::clock::duration>(std::chrono::duration<double>(seconds)),
               std::move(then));
}

double session_socket::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace parley::client
