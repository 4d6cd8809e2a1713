#pragma once

#include "actors/cluster/node_socket.hpp"
#include "net/cluster/node_tunnel.hpp"
#include "net/stream.hpp"

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace parley::net {

/// The first exchange over a new connection between two nodes: TLS if configured, then a greeting each way. Returns a
/// socket that carries only the nodes' messages, or the reason for failure. Has a deadline.
class node_handshake final : public std::enable_shared_from_this<node_handshake> {
public:
  enum class side { gateway, worker };
  using done = std::function<void(actors::dialled)>;

  /// `tls` null = plain text. `secret`: shown by a worker, asked for by a gateway; empty = none. `patience` limits the
  /// whole exchange. `tell` is called once, on the connection's executor.
  node_handshake(stream connection, side as, std::shared_ptr<asio::ssl::context> tls, std::string secret,
                 std::chrono::milliseconds patience, tunnel_limits limits, done tell);

  void run();

  /// Closes the connection without calling back. Does nothing if the handshake is over.
  void drop();

private:
  void on_secure(error_code ec);
  void fail_to_secure(error_code ec);
  void hear();
  void on_heard(error_code ec, std::size_t bytes);
  void judge();
  void write_line(const std::string& words, std::function<void(error_code)> then);
  void refuse(const std::string& why);
  void give();
  void fail(std::string why, bool lasting);

  stream stream_;
  const side side_;
  const std::shared_ptr<asio::ssl::context> tls_;
  const std::string secret_;
  const std::chrono::milliseconds patience_;
  const tunnel_limits limits_;
  done tell_;
  std::array<char, 256> block_;
  std::size_t heard_ = 0;
  std::string said_;
};

} // namespace parley::net
