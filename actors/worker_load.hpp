#pragma once

#include "actors/prompt_key.hpp"
#include "inference/engine.hpp"

#include <vector>

namespace parley::actors {

/// What a worker tells its gateways of itself, a few times a second when something has changed. What it counts, it
/// counts from when it joined.
struct worker_load {
  inference::engine_load engine;
  double busy_s = 0; ///< that the engine's thread has worked
  std::vector<prompt_key> prompts;
};

} // namespace parley::actors
