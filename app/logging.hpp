#pragma once

#include "config/settings.hpp"

namespace parley::app {

/// Sends the log to standard error, as `log.level` and `log.format` say.
void start_logging(const config::settings& settings);

} // namespace parley::app
