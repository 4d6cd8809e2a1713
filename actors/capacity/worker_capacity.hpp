#pragma once

#include "actors/capacity/prefix_hash.hpp"
#include "inference/engine.hpp"

#include <vector>

namespace parley::actors {

/// What a worker reports to a gateway, at most twice a second and only if something has changed. Counts start when the
/// worker joined the gateway.
struct worker_capacity {
  inference::engine_capacity engine;
  double busy_s = 0; ///< seconds that the engine's thread has worked
  std::vector<prefix_hash> prompts;
};

} // namespace parley::actors
