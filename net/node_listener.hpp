#pragma once

#include "actors/node_door.hpp"
#include "config/settings.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace parley::net {

/// Which of several clients' connections, the oldest first, goes when there are too many: the oldest of the client that
/// has most, so that nobody can crowd out others. Pure; there has to be one.
std::size_t whom_to_drop(const std::vector<std::string_view>& clients);

/// The port at which worker nodes join a gateway. Only who gets through the handshake in time, with the right
/// certificate and version, reaches the door; strangers are answered, logged and closed.
class node_listener {
public:
  /// Binds, listens, and accepts on a thread of its own. `door` outlives it.
  /// \throws std::system_error when it cannot listen there, config::settings_error for certificates that cannot be used
  /// and for plain text on an address that other machines can reach
  node_listener(const config::settings& settings, actors::node_door& door);

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
