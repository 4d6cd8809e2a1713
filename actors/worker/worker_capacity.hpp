#pragma once

#include "actors/queue/prefix_hash.hpp"
#include "inference/engine.hpp"

#include <vector>

namespace parley::actors {

/// What a worker reports to its gateways, at most twice a second when something has changed. Its counts start when it
/// joined.
struct worker_capacity {
  inference::engine_capacity engine;
  double busy_s = 0; ///< that the engine's thread has worked
  std::vector<prefix_hash> prompts;
};

} // namespace parley::actors
