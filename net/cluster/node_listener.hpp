#pragma once

#include "actors/cluster/node_socket.hpp"
#include "config/settings.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace parley::net {

/// Which connection to drop when there are too many, given each one's client, the oldest first: the oldest connection
/// of the client that has most, so that nobody can crowd out others. Pure; needs at least one.
std::size_t whom_to_drop(const std::vector<std::string_view>& clients);

/// The port at which worker nodes join a gateway. Only those that finish the handshake in time, with the right
/// certificate and version, are admitted; all others are answered, logged and closed.
class node_listener {
public:
  /// Binds, listens, and accepts on its own thread. `entrance` must outlive it. \throws std::system_error if it cannot
  /// listen there, config::settings_error for certificates that cannot be used and for plain text on an address that
  /// other machines can reach
  node_listener(const config::settings& settings, actors::node_entrance& entrance);

  /// Cuts every link.
  ~node_listener();

  node_listener(const node_listener&) = delete;
  node_listener& operator=(const node_listener&) = delete;

  /// HOST:PORT, with the actual port.
  std::string address() const;

  /// Reads the certificates again, from the same files; what it returns puts them into effect, for links that begin then.
  /// \throws config::settings_error
  std::function<void()> read_again() const;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace parley::net
