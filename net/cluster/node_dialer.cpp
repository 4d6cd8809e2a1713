#include "net/cluster/node_dialer.hpp"

#include "base/answered.hpp"
#include "config/load.hpp"
#include "net/access/peer.hpp"
#include "net/beast.hpp"
#include "net/cluster/node_handshake.hpp"
#include "net/cluster/node_tls.hpp"
#include "net/io_thread.hpp"
#include "net/logger.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <variant>

namespace parley::net {

namespace {

/// A gateway limits its clients' messages to less than this, and gateways are trusted.
constexpr std::size_t largest_from_gateways = 2u << 30;

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

} // namespace

class node_dialer::impl {
public:
  impl(const config::settings& settings, std::string address)
      : whole_(std::move(address)), settings_(settings), tls_(make_node_tls(settings)), secret_(settings.nodes.secret),
        patience_(milliseconds_of(settings.limits.handshake_seconds)), limits_{milliseconds_of(
                                                                                   settings.nodes.silence_seconds),
                                                                               largest_from_gateways} {
    const auto colon = whole_.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == whole_.size())
      throw config::settings_error("nodes.join and nodes.peers must be HOST:PORT");
    host_ = whole_.substr(0, colon);
    if (host_.starts_with('[') && host_.ends_with(']')) host_ = host_.substr(1, host_.size() - 2);
    port_ = whole_.substr(colon + 1);
    if (!std::all_of(port_.begin(), port_.end(), [](char c) { return c >= '0' && c <= '9'; }))
      throw config::settings_error("nodes.join and nodes.peers must be HOST:PORT");
    thread_ = std::thread([this] { run_guarded(io_, "the link to the gateway"); });
  }

  ~impl() {
    io_.stop();
    thread_.join();
  }

  void dial(std::function<void(actors::dialled)> done) {
    const auto once = base::answered<actors::dialled>(
        std::move(done), actors::dial_failure{whole_ + ": the connection failed, as the log says", false});
    asio::post(io_, [this, once] { resolve(once); });
  }

  std::function<void()> read_again() {
    auto next = make_node_tls(settings_);
    return [this, next = std::move(next)] {
      if (!next) return;
      asio::post(io_, [this, next] { tls_ = next; });
      log()->info("the certificates of nodes were read again, to call {}", whole_);
    };
  }

private:
  using answer = std::function<void(actors::dialled)>; ///< called once; a step that throws and drops it is a failure

  void resolve(const answer& done) {
    const auto resolver = std::make_shared<tcp::resolver>(io_);
    resolver->async_resolve(host_, port_, [this, resolver, done](error_code ec, const auto& found) {
      if (ec) return fail(done, {ec.message(), false});
      for (const auto& each : found)
        if (!tls_ && !peer_at(each.endpoint().address()).loopback)
          return fail(done, {"it is another machine: set nodes.cert, nodes.key and nodes.ca", true});
      connect(found, done);
    });
  }

  void connect(const tcp::resolver::results_type& where, const answer& done) {
    const auto socket = std::make_shared<beast::tcp_stream>(io_);
    socket->expires_after(patience_);
    socket->async_connect(where, [this, socket, done](error_code ec, const tcp::endpoint&) {
      if (ec) return fail(done, {ec.message(), false});
      greet(socket->release_socket(), done);
    });
  }

  void greet(tcp::socket connected, const answer& done) {
    error_code ignored;
    connected.set_option(tcp::no_delay(true), ignored);
    std::make_shared<node_handshake>(stream(std::move(connected)), node_handshake::side::worker, tls_, secret_,
                                     patience_, limits_,
                                     [this, done](actors::dialled how) {
                                       if (const auto* failure = std::get_if<actors::dial_failure>(&how))
                                         return fail(done, *failure);
                                       done(std::move(how));
                                     })
        ->run();
  }

  void fail(const answer& done, const actors::dial_failure& why) const {
    done(actors::dial_failure{whole_ + ": " + why.reason, why.lasting});
  }

  const std::string whole_;
  const config::settings settings_;
  std::shared_ptr<asio::ssl::context> tls_; ///< used on the thread of `io_`
  const std::string secret_;                ///< shown to the gateway; empty = none
  const std::chrono::milliseconds patience_;
  const tunnel_limits limits_;
  std::string host_;
  std::string port_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
  std::thread thread_;
};

node_dialer::node_dialer(const config::settings& settings, std::string address)
    : impl_(std::make_unique<impl>(settings, std::move(address))) {}
node_dialer::~node_dialer() = default;

void node_dialer::dial(std::function<void(actors::dialled)> done) {
  impl_->dial(std::move(done));
}

std::function<void()> node_dialer::read_again() const {
  return impl_->read_again();
}

} // namespace parley::net
