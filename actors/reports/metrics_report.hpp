#pragma once

#include "actors/meters/meters.hpp"
#include "actors/reports/status_report.hpp"

#include <string>

namespace parley::actors {

/// GET /metrics: the counters and the current state, in Prometheus's text format.
std::string metrics_report(const server_snapshot& now, meters& counted);

} // namespace parley::actors
