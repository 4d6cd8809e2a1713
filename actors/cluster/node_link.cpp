#include "actors/cluster/node_link.hpp"

#include "actors/cluster/link_guard.hpp"

#include <caf/io/all.hpp>

#include <set>
#include <utility>

namespace parley::actors {

namespace {

/// The middleman publishes actors under port numbers; there is only one actor to publish.
constexpr std::uint16_t only_port = 1;

} // namespace

void configure_remoting(caf::actor_system_config& config, std::chrono::milliseconds silence) {
  config.load<caf::io::middleman>();
  config.add_message_type<engine_event>("parley::engine_event");
  config.add_message_type<engine_open>("parley::engine_open");
  config.add_message_type<engine_command>("parley::engine_command");
  config.add_message_type<open_denied>("parley::open_denied");
  config.add_message_type<slots_offered>("parley::slots_offered");
  config.add_message_type<capacity_report>("parley::capacity_report");
  config.add_message_type<worker_leaves>("parley::worker_leaves");
  config.add_message_type<orphan_closed>("parley::orphan_closed");
  config.add_message_type<slot_orphaned>("parley::slot_orphaned");
  config.add_message_type<worker_start>("parley::worker_start");
  config.add_message_type<node_hello>("parley::node_hello");
  config.add_message_type<node_verdict>("parley::node_verdict");
  config.add_message_type<peer_hello>("parley::peer_hello");
  config.add_message_type<peer_welcome>("parley::peer_welcome");
  config.add_message_type<peer_refused>("parley::peer_refused");
  config.add_message_type<log_piece>("parley::log_piece");
  config.add_message_type<piece_taken>("parley::piece_taken");
  config.add_message_type<log_refused>("parley::log_refused");
  // CAF's own timeout stays off: it counts whole messages, so a large message over a slow line looks like silence. The
  // owner of the socket watches its bytes instead (net/cluster/node_tunnel); these heartbeats keep bytes coming.
  config.set("middleman.heartbeat-interval", caf::timespan(silence / 5));
}

node_links::node_links(caf::actor_system& system)
    : system_(system), broker_(system.middleman().named_broker<link_guard>(caf::atom("nodes"))) {}

void node_links::serve(node_socket socket, const node_registry_actor& registry) {
  caf::anon_send(broker_, caf::publish_atom_v, scribe(std::move(socket)), only_port,
                 caf::actor_cast<caf::strong_actor_ptr>(registry), std::set<std::string>{});
}

caf::io::scribe_ptr node_links::scribe(node_socket socket) {
  return system_.middleman().backend().new_scribe(socket.release());
}

} // namespace parley::actors
