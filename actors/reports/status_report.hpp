#pragma once

#include "actors/queue/server_snapshot.hpp"
#include "actors/session_registry.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace parley::actors {

/// The JSON object of GET /status (docs/protocol.md 13).
std::string status_report(const server_snapshot& now);

/// The JSON array of GET /sessions (docs/protocol.md 13).
std::string sessions_report(const std::vector<session_registry::view>& sessions,
                            std::chrono::steady_clock::time_point now);

} // namespace parley::actors
