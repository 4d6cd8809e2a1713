#pragma once

#include "actors/cluster/node_socket.hpp"
#include "config/settings.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace parley::net {

/// Which connection to drop when there are too many, given the client of each, the oldest first: the oldest of the
/// client that has most, so that nobody can crowd out others. Pure; there must be at least one.
std::size_t whom_to_drop(const std::vector<std::string_view>& clients);

/// The port at which worker nodes join a gateway. Only those that finish the handshake in time, with the right
/// certificate and version, get through; all others are answered, logged and closed.
class node_listener {
public:
  /// Binds, listens, and accepts on a thread of its own. `entrance` outlives it.
  /// \throws std::system_error when it cannot listen there, config::settings_error for certificates that cannot be used
  /// and for plain text on an address that other machines can reach
  node_listener(const config::settings& settings, actors::node_entrance& entrance);

  /// Cuts every link.
  ~node_listener();

  node_listener(const node_listener&) = delete;
  node_listener& operator=(const node_listener&) = delete;

  /// HOST:PORT, with the port that is really bound.
  std::string address() const;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace parley::net
