#include "net/node_dialer.hpp"

#include "config/load.hpp"
#include "net/beast.hpp"
#include "net/node_handshake.hpp"
#include "net/node_tls.hpp"
#include "net/peer.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <variant>

namespace parley::net {

class node_dialer::impl {
public:
  impl(const config::settings& settings, std::string address)
      : whole_(std::move(address)), tls_(make_node_tls(settings)),
        patience_(std::chrono::milliseconds(static_cast<std::int64_t>(settings.limits.handshake_seconds * 1000))) {
    const auto colon = whole_.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == whole_.size())
      throw config::settings_error("nodes.join must be HOST:PORT");
    host_ = whole_.substr(0, colon);
    if (host_.starts_with('[') && host_.ends_with(']')) host_ = host_.substr(1, host_.size() - 2);
    port_ = whole_.substr(colon + 1);
    if (!std::all_of(port_.begin(), port_.end(), [](char c) { return c >= '0' && c <= '9'; }))
      throw config::settings_error("nodes.join must be HOST:PORT");
    thread_ = std::thread([this] { io_.run(); });
  }

  ~impl() {
    io_.stop();
    thread_.join();
  }

  void dial(std::function<void(actors::dialled)> done) {
    asio::post(io_, [this, done = std::move(done)]() mutable { resolve(std::move(done)); });
  }

private:
  using callback = std::function<void(actors::dialled)>;

  void resolve(callback done) {
    const auto resolver = std::make_shared<tcp::resolver>(io_);
    resolver->async_resolve(
        host_, port_, [this, resolver, done = std::move(done)](error_code ec, const auto& found) mutable {
          if (ec) return fail(done, {ec.message(), false});
          for (const auto& each : found)
            if (!tls_ && !peer_at(each.endpoint().address()).loopback)
              return fail(done, {"it is another machine: set nodes.cert, nodes.key and nodes.ca", true});
          connect(found, std::move(done));
        });
  }

  void connect(const tcp::resolver::results_type& where, callback done) {
    const auto socket = std::make_shared<beast::tcp_stream>(io_);
    socket->expires_after(patience_);
    socket->async_connect(where, [this, socket, done = std::move(done)](error_code ec, const tcp::endpoint&) mutable {
      if (ec) return fail(done, {ec.message(), false});
      auto connected = socket->release_socket();
      error_code ignored;
      connected.set_option(tcp::no_delay(true), ignored);
      std::make_shared<node_handshake>(stream(std::move(connected)), node_handshake::side::worker, tls_, patience_,
                                       [this, done = std::move(done)](actors::dialled how) {
                                         if (const auto* failure = std::get_if<actors::dial_failure>(&how))
                                           return fail(done, *failure);
                                         done(std::move(how));
                                       })
          ->run();
    });
  }

  void fail(const callback& done, const actors::dial_failure& why) const {
    done(actors::dial_failure{whole_ + ": " + why.reason, why.lasting});
  }

  const std::string whole_;
  const std::shared_ptr<asio::ssl::context> tls_;
  const std::chrono::milliseconds patience_;
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

} // namespace parley::net
