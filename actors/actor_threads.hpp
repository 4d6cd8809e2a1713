#pragma once

#include "actors/cluster/node_link.hpp"
#include "actors/scheduling_policy.hpp"

#include <caf/scheduler/coordinator.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>

namespace parley::actors {

/// Configures an actor system. With `silence`, for links between nodes too.
inline caf::actor_system_config& prepare(caf::actor_system_config& config,
                                         std::optional<std::chrono::milliseconds> silence) {
  // A handful is enough: decoding a second of sound takes a scheduler thread well under a millisecond. They sleep when
  // there is nothing to do; CAF's default, work stealing, keeps looking for work and costs more than the work.
  const std::size_t threads = std::clamp(std::thread::hardware_concurrency(), 2u, 8u);
  config.set("scheduler.max-threads", threads);
  // Work queued by a busy actor may start before that actor goes idle.
  config.set("scheduler.max-throughput", std::size_t{16});
  config.load<caf::scheduler::coordinator<scheduling_policy>>();
  if (silence) configure_remoting(config, *silence);
  return config;
}

} // namespace parley::actors
