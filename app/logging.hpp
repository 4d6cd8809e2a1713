#pragma once

#include "config/settings.hpp"

namespace parley::app {

/// Sends all logs (net, actors, engine, and the rest as "parley") to standard error, as configured in the section
/// `log`. Each line names the session that it concerns. A violated invariant is logged once per place in the code.
void start_logging(const config::settings& settings);

} // namespace parley::app
