#pragma once

#include <string>

namespace parley::inference {

// Logging from any thread: spdlog behind a wall, because LibTorch brings an fmt of its own, which the two may not share
// a file with.

/// One line at level info.
void log_info(const std::string& line);

/// One line at level warning: something is not as one would want it, and the work goes on.
void log_warning(const std::string& line);

/// One line at level trace, and whether anybody would read it.
void log_trace(const std::string& line);
bool traces();

} // namespace parley::inference
