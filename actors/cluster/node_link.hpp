#pragma once

#include "actors/cluster/node_messages.hpp"
#include "actors/cluster/node_socket.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/io/fwd.hpp>

#include <chrono>

namespace parley::actors {

/// Loads CAF's middleman and registers the types that travel between nodes. Every link carries five heartbeats per
/// `silence`; if none arrives for that long, the owner of the socket considers the peer dead and ends the link.
void configure_remoting(caf::actor_system_config& config, std::chrono::milliseconds silence);

/// Passes sockets to a system's middleman. Links are established and protected elsewhere (`node_socket`): the middleman
/// itself neither listens nor dials, so that no unchecked peer can reach it.
class node_links {
public:
  explicit node_links(caf::actor_system& system);

  /// Lets the other side reach `registry` over the socket.
  void serve(node_socket socket, const node_registry_actor& registry);

  /// The broker that answers (connect_atom, scribe_ptr, port) with the peer's id and the actor that it published.
  const caf::actor& broker() const { return broker_; }
  caf::io::scribe_ptr scribe(node_socket socket);

private:
  caf::actor_system& system_;
  caf::actor broker_;
};

} // namespace parley::actors
