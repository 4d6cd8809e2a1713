#pragma once

#include "base/log_throttle.hpp"
#include "net/beast.hpp"
#include "net/http/http_session.hpp"
#include "net/spare_descriptor.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace parley::net {

/// Accepts connections and gives each its own strand.
class listener final : public std::enable_shared_from_this<listener> {
public:
  /// Binds and listens; port 0 = any free port. `io` and `shared` must outlive it. \throws boost::system::system_error
  listener(asio::io_context& io, const std::string& host, std::uint16_t port, service& shared);

  // Both may be called from any thread and return at once.
  void run();
  void stop();

  std::uint16_t port() const { return port_; }

  /// The address, as a number.
  const std::string& address() const { return address_; }

  /// Whether other machines can reach it.
  bool is_reachable() const { return reachable_; }

private:
  void accept();
  void on_accept(error_code ec, tcp::socket socket, const std::shared_ptr<connection_owner>& owner);
  void take(tcp::socket socket, const std::shared_ptr<connection_owner>& owner);
  void log_shortage(error_code why);
  void pause(error_code why);

  asio::io_context& io_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  spare_descriptor spare_;
  base::log_throttle short_{std::chrono::minutes(1)};
  service& shared_;
  std::uint16_t port_ = 0;
  std::string address_;
  bool reachable_ = false;
};

} // namespace parley::net
