#include "actors/queue/server_snapshot.hpp"

#include <algorithm>

namespace parley::actors {

const admission_queue::worker_view* slots_of(const server_snapshot& now, worker_key worker) {
  const auto found = std::ranges::find(now.slots, worker, &admission_queue::worker_view::worker);
  return found == now.slots.end() ? nullptr : &*found;
}

bool has_room(const server_snapshot& now, worker_key worker) {
  const auto* of = slots_of(now, worker);
  return of != nullptr && of->busy < of->slots;
}

} // namespace parley::actors
