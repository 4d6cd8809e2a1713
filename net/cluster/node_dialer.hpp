#pragma once

#include "actors/cluster/node_socket.hpp"
#include "config/settings.hpp"

#include <functional>
#include <memory>
#include <string>

namespace parley::net {

/// Connects a worker to a gateway.
class node_dialer {
public:
  /// \throws config::settings_error for an address or certificates that cannot be used, and for plain text to another
  /// machine
  node_dialer(const config::settings& settings, std::string address);

  /// Cuts the link. Callbacks that are still outstanding are dropped.
  ~node_dialer();

  node_dialer(const node_dialer&) = delete;
  node_dialer& operator=(const node_dialer&) = delete;

  /// Makes one attempt; calls back once, on a thread of the dialer. Thread-safe, never blocks.
  void dial(std::function<void(actors::dialled)> done);

  /// Reads the certificates again, from the same files; what it returns puts them into effect, for links that begin then.
  /// \throws config::settings_error
  std::function<void()> read_again() const;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace parley::net
