#pragma once

#include "actors/engine_thread.hpp"
#include "actors/node_member.hpp"
#include "config/settings.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <functional>
#include <string>
#include <vector>

namespace parley::actors {

/// All actors of a worker node: one worker, and for each of its gateways the member that keeps it joined there.
class node_worker {
public:
  /// The worker loads its engine at once and joins when it is up. `tell` is called on one of its threads and may not
  /// block.
  node_worker(const config::settings& settings, std::string name, engine_factory make,
              std::vector<node_dialer> gateways, std::function<void(member_news)> tell);
  /// Stops, if `stop` was not called.
  ~node_worker();

  /// Ends all actors and joins every thread. The last call; blocks.
  void stop();

  /// Takes no more sessions, asks that those it has go on elsewhere, and tells `ended` when none is left. Does not
  /// block.
  void leave();

  node_worker(const node_worker&) = delete;
  node_worker& operator=(const node_worker&) = delete;

private:
  caf::actor_system_config config_;
  caf::actor_system system_;
  worker_actor worker_;
  std::vector<node_member_inner> members_;
};

} // namespace parley::actors
