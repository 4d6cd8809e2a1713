#pragma once

#include "actors/reports/status_report.hpp"

#include <cstdint>
#include <string>

// What the pages of the official demo request of a server, in the demo's own terms (docs/demo_endpoints.md).
namespace parley::actors {

/// The JSON object of GET /workers.
std::string demo_workers(const server_snapshot& now);

/// The JSON object of GET /api/queue. \param now_unix_ms the reference for the times of day in it
std::string demo_queue(const server_snapshot& now, std::int64_t now_unix_ms);

} // namespace parley::actors
