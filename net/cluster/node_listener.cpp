#include "net/cluster/node_listener.hpp"

#include "base/log_throttle.hpp"
#include "config/load.hpp"
#include "net/access/peer.hpp"
#include "net/beast.hpp"
#include "net/cluster/node_handshake.hpp"
#include "net/cluster/node_tls.hpp"
#include "net/io_thread.hpp"
#include "net/logger.hpp"
#include "net/spare_descriptor.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

namespace parley::net {

namespace {

/// Enough, because there are few nodes and they identify themselves at once.
constexpr std::size_t most_handshakes = 64;
constexpr std::chrono::milliseconds longest_handshake{5000};

/// Workers send answers. The largest is a spoken answer in one piece: an hour of sound is 330 MB.
constexpr std::size_t largest_from_workers = 512u << 20;

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

} // namespace

std::size_t whom_to_drop(const std::vector<std::string_view>& clients) {
  std::map<std::string_view, std::size_t> counts;
  for (const auto client : clients) ++counts[client];
  std::size_t whom = 0;
  for (std::size_t i = 1; i < clients.size(); ++i)
    if (counts[clients[i]] > counts[clients[whom]]) whom = i;
  return whom;
}

class node_listener::impl {
public:
  impl(const config::settings& settings, actors::node_entrance& entrance)
      : host_(settings.nodes.host), settings_(settings), tls_(make_node_tls(settings)), secret_(settings.nodes.secret),
        entrance_(entrance), acceptor_(io_), pause_(io_),
        patience_(std::min(longest_handshake, milliseconds_of(settings.limits.handshake_seconds))),
        limits_{milliseconds_of(settings.nodes.silence_seconds), largest_from_workers} {
    const auto port = std::to_string(settings.nodes.port);
    try {
      const tcp::endpoint where = tcp::resolver(io_).resolve(host_, port, tcp::resolver::passive).begin()->endpoint();
      if (!tls_ && !peer_at(where.address()).loopback)
        throw config::settings_error("nodes.host: " + host_ +
                                     " can be reached from other machines: set nodes.cert, nodes.key and nodes.ca");
      acceptor_.open(where.protocol());
      acceptor_.set_option(tcp::acceptor::reuse_address(true));
      acceptor_.bind(where);
      acceptor_.non_blocking(true);
      acceptor_.listen();
    } catch (const boost::system::system_error& error) {
      throw std::system_error(error.code(), "cannot listen for nodes on " + host_ + ":" + port);
    }
    accept();
    thread_ = std::thread([this] { run_guarded(io_, "a link between nodes"); });
  }

  ~impl() {
    io_.stop();
    thread_.join();
  }

  std::string address() const {
    const bool v6 = host_.find(':') != std::string::npos;
    return (v6 ? "[" + host_ + "]" : host_) + ":" + std::to_string(acceptor_.local_endpoint().port());
  }

  std::function<void()> read_again() {
    auto next = make_node_tls(settings_);
    return [this, next = std::move(next)] {
      if (!next) return;
      asio::post(io_, [this, next] { tls_ = next; });
      log()->info("the certificates of nodes were read again");
    };
  }

private:
  void accept() {
    acceptor_.async_accept([this](error_code ec, tcp::socket socket) {
      if (spare_descriptor::is_short(ec)) {
        log_now_and_then(short_, "cannot accept a node: " + ec.message());
        auto one = spare_.accept(acceptor_, io_.get_executor());
        ec = one.failed;
        if (one.socket) socket = std::move(*one.socket);
      }
      if (ec) return pause(ec);
      try {
        if (socket.is_open()) greet(std::move(socket));
      } catch (const std::exception& error) {
        log()->error("the handshake with a node failed: {}", error.what());
      }
      accept();
    });
  }

  void pause(error_code why) {
    if (why != asio::error::would_block) log_now_and_then(short_, "cannot accept a node: " + why.message());
    pause_.expires_after(std::chrono::milliseconds(100));
    pause_.async_wait([this](error_code) { accept(); });
  }

  void greet(tcp::socket socket) {
    error_code gone;
    const auto remote = socket.remote_endpoint(gone);
    if (gone) return;
    socket.set_option(tcp::no_delay(true), gone);
    make_room();
    const peer from = peer_at(remote.address());
    const auto number = ++last_number_;
    const auto handshake = std::make_shared<node_handshake>(
        stream(std::move(socket)), node_handshake::side::gateway, tls_, secret_, patience_, limits_,
        [this, number, address = from.address](actors::dialled how) {
          greeted_.erase(number);
          let_in(how, address);
        });
    greeted_.emplace(number, greeting{from.group, handshake});
    handshake->run();
  }

  /// If there are too many handshakes, drops an old one: a node would have identified itself by now, and a new
  /// connection may be a node.
  void make_room() {
    if (greeted_.size() < most_handshakes) return;
    std::vector<std::string_view> clients;
    clients.reserve(greeted_.size());
    for (const auto& [number, each] : greeted_) clients.emplace_back(each.client);
    const auto whose = std::next(greeted_.begin(), static_cast<std::ptrdiff_t>(whom_to_drop(clients)));
    log_now_and_then(crowded_,
                     "too many silent connections to the node port; dropped the oldest from " + whose->second.client);
    if (const auto handshake = whose->second.handshake.lock()) handshake->drop();
    greeted_.erase(whose);
  }

  void let_in(actors::dialled& how, const std::string& address) {
    if (const auto* failure = std::get_if<actors::dial_failure>(&how))
      return log_now_and_then(refused_, "a node from " + address + " is refused: " + failure->reason);
    entrance_.admit_node(std::move(std::get<actors::node_socket>(how)), address);
  }

  static void log_now_and_then(base::log_throttle& throttle, const std::string& line) {
    if (const auto more = throttle.pass(std::chrono::steady_clock::now()))
      log()->warn("{} ({} more in the last minute)", line, *more);
  }

  struct greeting {
    std::string client; ///< the client to which limits apply
    std::weak_ptr<node_handshake> handshake;
  };

  const std::string host_;
  const config::settings settings_;
  std::shared_ptr<asio::ssl::context> tls_; ///< used on the thread of `io_`
  const std::string secret_;                ///< empty = nodes need none
  actors::node_entrance& entrance_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  const std::chrono::milliseconds patience_;
  const tunnel_limits limits_;
  spare_descriptor spare_;
  base::log_throttle short_{std::chrono::minutes(1)};
  base::log_throttle crowded_{std::chrono::minutes(1)};
  base::log_throttle refused_{std::chrono::minutes(1), 10};
  std::map<std::uint64_t, greeting> greeted_; ///< connections in the handshake, the oldest first
  std::uint64_t last_number_ = 0;
  std::thread thread_;
};

node_listener::node_listener(const config::settings& settings, actors::node_entrance& entrance)
    : impl_(std::make_unique<impl>(settings, entrance)) {}
node_listener::~node_listener() = default;

std::string node_listener::address() const {
  return impl_->address();
}

std::function<void()> node_listener::read_again() const {
  return impl_->read_again();
}

} // namespace parley::net
