#pragma once

#include "config/settings.hpp"

namespace parley::app {

/// Logs go to standard error, with the level and the format of the settings. Standard output belongs to the ready line.
void start_logging(const config::settings& settings);

} // namespace parley::app
