#include "net/node_listener.hpp"

#include "config/load.hpp"
#include "net/beast.hpp"
#include "net/log.hpp"
#include "net/node_handshake.hpp"
#include "net/node_tls.hpp"
#include "net/peer.hpp"

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

namespace parley::net {

namespace {

/// Nodes are few; whoever opens more connections than this without a word is none.
constexpr int most_handshakes = 64;

} // namespace

class node_listener::impl {
public:
  impl(const config::settings& settings, actors::node_door& door)
      : host_(settings.nodes.host), tls_(make_node_tls(settings)), door_(door), acceptor_(io_), pause_(io_),
        patience_(std::chrono::milliseconds(static_cast<std::int64_t>(settings.limits.handshake_seconds * 1000))) {
    const auto port = std::to_string(settings.nodes.port);
    try {
      const tcp::endpoint where = tcp::resolver(io_).resolve(host_, port, tcp::resolver::passive).begin()->endpoint();
      if (!tls_ && !peer_at(where.address()).loopback)
        throw config::settings_error("nodes.host: " + host_ +
                                     " can be reached from other machines: set nodes.cert, nodes.key and nodes.ca");
      acceptor_.open(where.protocol());
      acceptor_.set_option(tcp::acceptor::reuse_address(true));
      acceptor_.bind(where);
      acceptor_.listen();
    } catch (const boost::system::system_error& error) {
      throw std::system_error(error.code(), "cannot listen for nodes on " + host_ + ":" + port);
    }
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }

  ~impl() {
    io_.stop();
    thread_.join();
  }

  std::string address() const {
    const bool v6 = host_.find(':') != std::string::npos;
    return (v6 ? "[" + host_ + "]" : host_) + ":" + std::to_string(acceptor_.local_endpoint().port());
  }

private:
  void accept() {
    acceptor_.async_accept([this](error_code ec, tcp::socket socket) {
      if (ec) {
        log()->warn("cannot accept a node: {}", ec.message());
        pause_.expires_after(std::chrono::milliseconds(100));
        return pause_.async_wait([this](error_code) { accept(); });
      }
      greet(std::move(socket));
      accept();
    });
  }

  void greet(tcp::socket socket) {
    error_code gone;
    const auto remote = socket.remote_endpoint(gone);
    if (gone || handshakes_ >= most_handshakes) return;
    socket.set_option(tcp::no_delay(true), gone);
    ++handshakes_;
    std::make_shared<node_handshake>(stream(std::move(socket)), node_handshake::side::gateway, tls_, patience_,
                                     [this, address = peer_at(remote.address()).address](actors::dialled how) {
                                       --handshakes_;
                                       if (auto* failure = std::get_if<actors::dial_failure>(&how))
                                         return log()->warn("a node from {} is not let in: {}", address,
                                                            failure->reason);
                                       door_.admit_node(std::get<actors::node_socket>(std::move(how)), address);
                                     })
        ->run();
  }

  const std::string host_;
  const std::shared_ptr<asio::ssl::context> tls_;
  actors::node_door& door_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  const std::chrono::milliseconds patience_;
  int handshakes_ = 0;
  std::thread thread_;
};

node_listener::node_listener(const config::settings& settings, actors::node_door& door)
    : impl_(std::make_unique<impl>(settings, door)) {}
node_listener::~node_listener() = default;

std::string node_listener::address() const {
  return impl_->address();
}

} // namespace parley::net
