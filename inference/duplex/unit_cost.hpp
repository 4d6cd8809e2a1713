#pragma once

#include "conversation/unit_cost.hpp"
#include "inference/formats/model_config.hpp"

namespace parley::inference::duplex {

/// The most context that one unit can take with this model (docs/model/thinker.md 5.3).
conversation::unit_cost unit_cost_of(const model_config& model);

} // namespace parley::inference::duplex
