#include "actors/worker_board.hpp"

#include <utility>

namespace parley::actors {

void worker_board::set(const worker_view& now) {
  {
    const std::lock_guard lock(mutex_);
    workers_[now.key] = now;
    was_up_ |= now.state == worker_state::up;
  }
  if (watch_) watch_(now);
}

void worker_board::remove(worker_key key) {
  const std::lock_guard lock(mutex_);
  workers_.erase(key);
}

void worker_board::close(std::string reason) {
  const std::lock_guard lock(mutex_);
  closed_ = std::move(reason);
}

readiness worker_board::ready() const {
  const std::lock_guard lock(mutex_);
  if (!closed_.empty()) return {false, closed_};
  bool loading = false;
  bool draining = false;
  for (const auto& [key, worker] : workers_) {
    if (worker.state == worker_state::up && worker.info.slots > 0) return {true, ""};
    loading |= worker.state == worker_state::loading;
    draining |= worker.state == worker_state::draining;
  }
  if (loading) return {false, "the model is still being loaded"};
  return {false, draining ? "every worker is being drained" : "no worker is up"};
}

bool worker_board::was_up() const {
  const std::lock_guard lock(mutex_);
  return was_up_;
}

std::optional<inference::engine_info> worker_board::engine() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, worker] : workers_)
    if (worker.state == worker_state::up || worker.state == worker_state::draining) return worker.info;
  return {};
}

std::vector<worker_view> worker_board::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<worker_view> views;
  views.reserve(workers_.size());
  for (const auto& [key, worker] : workers_) views.push_back(worker);
  return views;
}

} // namespace parley::actors
