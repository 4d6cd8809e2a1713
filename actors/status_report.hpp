#pragma once

#include "actors/queue_line.hpp"
#include "actors/session_registry.hpp"
#include "actors/worker_board.hpp"

#include <string>
#include <vector>

namespace parley::actors {

/// The JSON object of GET /status (PROTOCOL.md 13). `slots` are those of workers that are up; `waits_s`, key
/// `queue.waits`, are the seconds that each waiting client has waited so far.
std::string status_report(const std::vector<worker_view>& workers, const std::vector<queue_line::worker_view>& slots,
                          const std::vector<double>& waits_s, const std::vector<session_registry::count>& sessions);

} // namespace parley::actors
