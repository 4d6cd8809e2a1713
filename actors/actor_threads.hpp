#pragma once

#include "actors/node_link.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>

namespace parley::actors {

/// Sets an actor system up. With `silence`, for links between nodes too.
inline caf::actor_system_config& prepare(caf::actor_system_config& config,
                                         std::optional<std::chrono::milliseconds> silence) {
  // A handful suffices: decoding a second of sound takes a scheduler thread well under a millisecond. They share one
  // queue and sleep while it is empty; CAF's default, stealing, looks around for work all the time and costs more than
  // the work.
  const std::size_t threads = std::clamp(std::thread::hardware_concurrency(), 2u, 8u);
  config.set("scheduler.max-threads", threads);
  config.set("scheduler.policy", caf::atom("sharing"));
  if (silence) speak_between_nodes(config, *silence);
  return config;
}

} // namespace parley::actors
