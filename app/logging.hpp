#pragma once

#include "config/settings.hpp"

namespace parley::app {

/// Sends the logs of all parts (net, actors, engine, and the rest as "parley") to standard error, as section `log` of
/// the settings says. Each line names the session that it is about. A violated invariant is logged once for each place.
void start_logging(const config::settings& settings);

} // namespace parley::app
