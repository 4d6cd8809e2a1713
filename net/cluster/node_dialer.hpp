#pragma once

#include "actors/cluster/node_socket.hpp"
#include "config/settings.hpp"

#include <functional>
#include <memory>
#include <string>

namespace parley::net {

/// How a worker reaches a gateway.
class node_dialer {
public:
  /// \throws config::settings_error for an address or certificates that cannot be used, and for plain text to another
  /// machine
  node_dialer(const config::settings& settings, std::string address);

  /// Cuts the link. Callbacks that have not been made yet are not made any more.
  ~node_dialer();

  node_dialer(const node_dialer&) = delete;
  node_dialer& operator=(const node_dialer&) = delete;

  /// One attempt; calls back once, on a thread of the dialer. Thread-safe, never blocks.
  void dial(std::function<void(actors::dialled)> done);

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace parley::net
