#pragma once

#include <string>

namespace parley::inference {

// Logging from any thread. spdlog is included only in the source file, because LibTorch bundles another fmt and the two
// must not meet in one file.

/// One line at level info.
void log_info(const std::string& line);

/// One line at level warning: something is wrong, but work continues.
void log_warning(const std::string& line);

/// One line at level trace, and whether it would be logged.
void log_trace(const std::string& line);
bool traces();

} // namespace parley::inference
