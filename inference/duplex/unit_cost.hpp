#pragma once

#include "conversation/unit_cost.hpp"
#include "inference/formats/model_config.hpp"

namespace parley::inference::duplex {

/// What one unit takes of the context with this model, at the most (docs/model/thinker.md 5.3).
conversation::unit_cost unit_cost_of(const model_config& model);

} // namespace parley::inference::duplex
