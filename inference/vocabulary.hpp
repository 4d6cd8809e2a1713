#pragma once

#include "conversation/engine.hpp"

namespace parley::inference {

using namespace parley::conversation; // an engine speaks of nothing else

} // namespace parley::inference
