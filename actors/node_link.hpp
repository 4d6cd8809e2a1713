#pragma once

#include "actors/node_door.hpp"
#include "actors/node_messages.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/io/fwd.hpp>

#include <chrono>

namespace parley::actors {

/// Loads CAF's middleman and teaches it what crosses between nodes. Every link carries a heartbeat five times in
/// `silence`, the span after which whoever made its socket takes the peer for dead and ends it.
void speak_between_nodes(caf::actor_system_config& config, std::chrono::milliseconds silence);

/// Hands sockets to the middleman of a system. The links are made and guarded elsewhere (`node_socket`): the middleman
/// itself neither listens nor dials, so that nobody unchecked can reach it.
class node_links {
public:
  explicit node_links(caf::actor_system& system);

  /// The other side reaches `registry` over it.
  void serve(node_socket socket, const node_registry_actor& registry);

  /// The broker that answers (connect_atom, scribe_ptr, port) with who is at the other end, and what to send it.
  const caf::actor& broker() const { return broker_; }
  caf::io::scribe_ptr scribe(node_socket socket);

private:
  caf::actor_system& system_;
  caf::actor broker_;
};

} // namespace parley::actors
