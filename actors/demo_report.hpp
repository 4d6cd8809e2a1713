#pragma once

#include "actors/queue_line.hpp"
#include "actors/worker_board.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// What the pages of the official demo ask of a server, in the demo's own words (docs/demo_endpoints.md).
namespace parley::actors {

/// The JSON object of GET /workers. `slots` are those of workers that are up.
std::string demo_workers(const std::vector<worker_view>& workers, const std::vector<queue_line::worker_view>& slots);

/// The JSON object of GET /api/queue. `waited_s`, one for each of `waiters`: the seconds that it has waited so far.
/// \param now_unix_ms from which the times of the day are counted back
std::string demo_queue(const std::vector<queue_line::waiter_view>& waiters, const std::vector<double>& waited_s,
                       const std::vector<queue_line::conversation_view>& conversations, std::size_t capacity,
                       std::int64_t now_unix_ms);

} // namespace parley::actors
