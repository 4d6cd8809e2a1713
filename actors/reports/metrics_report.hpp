#pragma once

#include "actors/meters.hpp"
#include "actors/reports/status_report.hpp"

#include <string>

namespace parley::actors {

/// GET /metrics: what was counted, and how things are now, in the text format of Prometheus.
std::string metrics_report(const server_snapshot& now, meters& counted);

} // namespace parley::actors
