#pragma once

#include "actors/cluster/node_messages.hpp"
#include "actors/cluster/node_socket.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/io/fwd.hpp>

#include <chrono>

namespace parley::actors {

/// Loads CAF's middleman and registers what is sent between nodes. Every link carries five heartbeats per `silence`,
/// after which the maker of its socket considers the peer dead and ends it.
void configure_remoting(caf::actor_system_config& config, std::chrono::milliseconds silence);

/// Passes sockets to a system's middleman. Links are established and protected elsewhere (`node_socket`): the middleman
/// itself neither listens nor dials, so that no unchecked peer can reach it.
class node_links {
public:
  explicit node_links(caf::actor_system& system);

  /// The other side can reach `registry` over it.
  void serve(node_socket socket, const node_registry_actor& registry);

  /// The broker that answers (connect_atom, scribe_ptr, port) with the id of the peer and the actor that it published.
  const caf::actor& broker() const { return broker_; }
  caf::io::scribe_ptr scribe(node_socket socket);

private:
  caf::actor_system& system_;
  caf::actor broker_;
};

} // namespace parley::actors
