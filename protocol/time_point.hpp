#pragma once

#include <chrono>

namespace parley::protocol {

/// Given to every call that depends on the time: nothing here reads a clock.
using time_point = std::chrono::steady_clock::time_point;

} // namespace parley::protocol
