#pragma once

#include "actors/job_queue.hpp"
#include "actors/node_link.hpp"

#include <caf/scheduler/coordinator.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>

namespace parley::actors {

/// Sets an actor system up. With `silence`, for links between nodes too.
inline caf::actor_system_config& prepare(caf::actor_system_config& config,
                                         std::optional<std::chrono::milliseconds> silence) {
  // A handful suffices: decoding a second of sound takes a scheduler thread well under a millisecond. They sleep while
  // there is nothing to do; CAF's default, stealing, looks around for work all the time and costs more than the work.
  const std::size_t threads = std::clamp(std::thread::hardware_concurrency(), 2u, 8u);
  config.set("scheduler.max-threads", threads);
  // Whom a busy actor gave work need not wait until nobody gives it any.
  config.set("scheduler.max-throughput", std::size_t{16});
  config.load<caf::scheduler::coordinator<job_queue>>();
  if (silence) speak_between_nodes(config, *silence);
  return config;
}

} // namespace parley::actors
