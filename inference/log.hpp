#pragma once

#include <string>

namespace parley::inference {

// Logging from any thread. spdlog is hidden in the source file, because LibTorch brings an fmt of its own and the two
// must not meet in one file.

/// One line at level info.
void log_info(const std::string& line);

/// One line at level warning: something is not as it should be, but work continues.
void log_warning(const std::string& line);

/// One line at level trace, and whether it would be logged.
void log_trace(const std::string& line);
bool traces();

} // namespace parley::inference
