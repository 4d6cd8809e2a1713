#pragma once

#include "actors/queue/admission_queue.hpp"
#include "actors/queue/worker_table.hpp"
#include "actors/session_registry.hpp"

#include <cstddef>
#include <vector>

namespace parley::actors {

/// The contents of GET /status and GET /metrics at one moment.
struct server_snapshot {
  std::vector<worker_view> workers;
  std::vector<admission_queue::worker_view> slots; ///< slots of the workers that are present
  std::vector<admission_queue::waiter_view> waiters;
  std::vector<double> waits_s; ///< for each of `waiters`: seconds that it has waited so far
  std::vector<admission_queue::conversation_view> conversations;
  std::size_t queue_capacity = 0;
  std::vector<session_registry::count> sessions;
};

/// The slots of a worker, and how many are in use; null while it offers none.
const admission_queue::worker_view* slots_of(const server_snapshot& now, worker_key worker);

/// Whether the worker has a free slot.
bool has_room(const server_snapshot& now, worker_key worker);

} // namespace parley::actors
