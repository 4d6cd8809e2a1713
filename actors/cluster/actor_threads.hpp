#pragma once

#include "actors/cluster/node_link.hpp"
#include "actors/execution.hpp"
#include "actors/scheduling_policy.hpp"

#include <caf/scheduler/coordinator.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>

namespace parley::actors {

/// Configures an actor system; with `silence`, also for links between nodes.
inline caf::actor_system_config& prepare(caf::actor_system_config& config,
                                         std::optional<std::chrono::milliseconds> silence) {
  // A few are enough: decoding a second of sound takes a scheduler thread well under a millisecond. They sleep when
  // idle. With CAF's default, work stealing, idle threads keep looking for work, which costs more than the work itself.
  const std::size_t threads = std::clamp(std::thread::hardware_concurrency(), 2u, 8u);
  config.set("scheduler.max-threads", threads);
  // Work queued by a busy actor may start before that actor goes idle.
  config.set("scheduler.max-throughput", messages_at_once);
  config.load<caf::scheduler::coordinator<scheduling_policy>>();
  if (silence) configure_remoting(config, *silence);
  return config;
}

} // namespace parley::actors
