#include "net/listener.hpp"

#include "net/guarded_strand.hpp"
#include "net/logger.hpp"

#include <utility>

namespace parley::net {

listener::listener(asio::io_context& io, const std::string& host, std::uint16_t port, service& shared)
    : io_(io), acceptor_(asio::make_strand(io)), pause_(acceptor_.get_executor()), shared_(shared) {
  const auto found = tcp::resolver(io).resolve(host, std::to_string(port), tcp::resolver::passive);
  const tcp::endpoint where = found.begin()->endpoint();
  acceptor_.open(where.protocol());
  acceptor_.set_option(tcp::acceptor::reuse_address(true));
  acceptor_.bind(where);
  acceptor_.non_blocking(true);
  acceptor_.listen();
  port_ = acceptor_.local_endpoint().port();
  address_ = where.address().to_string();
  reachable_ = !peer_at(where.address()).loopback;
}

void listener::run() {
  asio::dispatch(acceptor_.get_executor(), [self = shared_from_this()] { self->accept(); });
}

void listener::stop() {
  asio::post(acceptor_.get_executor(), [self = shared_from_this()] {
    error_code ignored;
    self->acceptor_.close(ignored);
    self->pause_.cancel();
  });
}

void listener::accept() {
  if (!acceptor_.is_open()) return;
  const auto owner = std::make_shared<connection_owner>();
  acceptor_.async_accept(guarded_strand(io_, owner),
                         [self = shared_from_this(), owner](error_code ec, tcp::socket socket) {
                           self->on_accept(ec, std::move(socket), owner);
                         });
}

void listener::on_accept(error_code ec, tcp::socket socket, const std::shared_ptr<connection_owner>& owner) {
  if (!acceptor_.is_open()) return;
  if (spare_descriptor::is_short(ec)) {
    log_shortage(ec);
    auto one = spare_.accept(acceptor_, guarded_strand(io_, owner));
    ec = one.failed;
    if (one.socket) socket = std::move(*one.socket);
  }
  if (ec) return pause(ec);
  try {
    if (socket.is_open()) take(std::move(socket), owner);
  } catch (const std::exception& error) {
    log()->error("a connection could not be accepted: {}", error.what());
  }
  accept();
}

void listener::take(tcp::socket socket, const std::shared_ptr<connection_owner>& owner) {
  error_code gone;
  const auto remote = socket.remote_endpoint(gone);
  if (gone) return;
  auto from = peer_at(remote.address());
  auto place = shared_.all.enter(from.group, owner);
  if (!place) return;
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  std::make_shared<http_session>(std::move(socket), std::move(from), std::move(*place), shared_)->run();
}

void listener::log_shortage(error_code why) {
  if (const auto more = short_.pass(std::chrono::steady_clock::now()))
    log()->warn("cannot accept a connection: {} ({} more in the last minute)", why.message(), *more);
}

/// Waits before the next accept, since retrying at once would not help.
void listener::pause(error_code why) {
  if (why != asio::error::would_block) log_shortage(why);
  pause_.expires_after(std::chrono::milliseconds(100));
  pause_.async_wait([self = shared_from_this()](error_code) { self->accept(); });
}

} // namespace parley::net
