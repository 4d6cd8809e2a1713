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

/// What GET /status and GET /metrics tell, at one moment.
struct server_snapshot {
  std::vector<worker_view> workers;
  std::vector<queue_line::worker_view> slots; ///< of workers that are there
  std::vector<queue_line::waiter_view> waiters;
  std::vector<double> waits_s; ///< one for each of `waiters`: seconds that it has waited so far
  std::vector<queue_line::conversation_view> conversations;
  std::size_t queue_capacity = 0;
  std::vector<session_registry::count> sessions;
};

/// The JSON object of GET /status (PROTOCOL.md 13).
std::string status_report(const server_snapshot& now);

/// The JSON array of GET /sessions (PROTOCOL.md 13).
std::string sessions_report(const std::vector<session_registry::view>& sessions,
                            std::chrono::steady_clock::time_point now);

} // namespace parley::actors
