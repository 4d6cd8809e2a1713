#pragma once

#include "actors/queue_line.hpp"
#include "actors/session_registry.hpp"
#include "actors/worker_board.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace parley::actors {

/// The words of GET /status and GET /metrics.
std::string_view name_of(worker_state state);
std::string_view name_of(protocol::mode kind);
std::string_view name_of(protocol::session_state state);

/// The JSON object of GET /status (PROTOCOL.md 13). `slots` are those of workers that are up; `waits_s`, key
/// `queue.waits`, are the seconds that each waiting client has waited so far.
std::string status_report(const std::vector<worker_view>& workers, const std::vector<queue_line::worker_view>& slots,
                          const std::vector<double>& waits_s, const std::vector<session_registry::count>& sessions);

/// The JSON array of GET /sessions (PROTOCOL.md 13).
std::string sessions_report(const std::vector<session_registry::view>& sessions,
                            std::chrono::steady_clock::time_point now);

} // namespace parley::actors
