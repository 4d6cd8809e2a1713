#pragma once

#include "conversation/engine.hpp"

namespace parley::inference {

using namespace parley::conversation; // commands, events and what they carry

} // namespace parley::inference
