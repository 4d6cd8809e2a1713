#pragma once

#include "actors/cluster/gateway_registration.hpp"
#include "actors/worker/engine_thread.hpp"
#include "config/settings.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <functional>
#include <string>
#include <vector>

namespace parley::actors {

/// All actors of a worker node: one worker, and a `gateway_registration` for each gateway that it joins.
class node_worker {
public:
  /// The worker loads its engine at once, and joins when it is loaded. `tell` is called on one of its threads and must
  /// not block.
  node_worker(const config::settings& settings, std::string name, engine_factory make,
              std::vector<node_dialer> gateways, std::function<void(registration_event)> tell);
  /// Calls `stop` if nobody has.
  ~node_worker();

  /// Ends all actors and joins every thread. Must be the last call; blocks.
  void stop();

  /// Accepts no more sessions, asks the gateways to move the running ones elsewhere, and reports `ended` when none is
  /// left. Does not block.
  void leave();

  node_worker(const node_worker&) = delete;
  node_worker& operator=(const node_worker&) = delete;

private:
  caf::actor_system_config config_;
  caf::actor_system system_;
  worker_actor worker_;
  std::vector<gateway_registration_inner> members_;
};

} // namespace parley::actors
