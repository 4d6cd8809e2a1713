#include "actors/queue/worker_table.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace parley::actors {

namespace {

/// Why no session is accepted, in plain words; the first three in the order of `closed_for`.
enum class unready : std::uint8_t { nothing, shutdown, queue_ended, loading, drained, no_worker };
constexpr std::array<std::string_view, 6> unready_words{"",
                                                        "the server is shutting down",
                                                        "the queue manager has ended",
                                                        "the model is still being loaded",
                                                        "every worker is being drained",
                                                        "no worker is up"};

readiness not_ready(unready why) {
  return {false, std::string(unready_words.at(static_cast<std::size_t>(why)))};
}

/// The row of a worker that is known and not down; null otherwise.
auto* live(auto& workers, worker_key key) {
  const auto found = workers.find(key);
  return found == workers.end() || found->second.seen.state == worker_state::down ? nullptr : &found->second;
}

} // namespace

// ---- changes

std::optional<worker_key> worker_table::join(worker_key key, worker_actor worker, std::string node,
                                             std::string device) {
  std::optional<worker_key> replaced;
  worker_view seen{key, worker_state::loading, std::move(node), std::move(device), {}, {}};
  {
    const std::lock_guard lock(mutex_);
    const auto is_lost = [](const auto& each) { return each.second.seen.state == worker_state::down; };
    auto before = std::ranges::find_if(workers_, [&](const auto& each) {
      return !seen.node.empty() && each.second.seen.node == seen.node && is_lost(each);
    });
    if (before == workers_.end() && static_cast<std::size_t>(std::ranges::count_if(workers_, is_lost)) >= most_lost)
      before = std::ranges::find_if(workers_, is_lost);
    if (before != workers_.end()) {
      replaced = before->first;
      workers_.erase(before);
    }
    workers_[key] = row{seen, std::move(worker), {}};
  }
  if (watch_) watch_(seen);
  return replaced;
}

std::optional<int> worker_table::offer(worker_key key, const inference::engine_info& info) {
  worker_view seen;
  {
    const std::lock_guard lock(mutex_);
    auto* of = live(workers_, key);
    if (!of) return {};
    of->seen.state = of->drained ? worker_state::draining : worker_state::up;
    was_up_ = true;
    model_ = info.model;
    of->seen.device = info.device;
    of->seen.info = info;
    seen = of->seen;
  }
  if (watch_) watch_(seen);
  return seen.state == worker_state::draining ? 0 : info.slots;
}

bool worker_table::drain(worker_key key, bool drained) {
  const std::lock_guard lock(mutex_);
  auto* of = live(workers_, key);
  if (!of) return false;
  of->drained = drained || of->leaving;
  return true;
}

bool worker_table::leave(worker_key key) {
  const std::lock_guard lock(mutex_);
  auto* of = live(workers_, key);
  if (!of) return false;
  of->leaving = of->drained = true;
  return true;
}

std::optional<worker_table::capacities> worker_table::report(worker_key key, worker_capacity told) {
  const std::lock_guard lock(mutex_);
  auto* of = live(workers_, key);
  if (!of) return {};
  auto before = std::exchange(of->capacity, std::move(told));
  return capacities{std::move(before), of->capacity};
}

bool worker_table::lose(worker_key key, bool left, std::string reason) {
  worker_view seen;
  {
    const std::lock_guard lock(mutex_);
    auto* of = live(workers_, key);
    if (!of) return false;
    if (left || of->leaving) {
      workers_.erase(key);
      return true;
    }
    of->worker = nullptr;
    of->capacity = {};
    of->drained = false;
    of->seen.state = worker_state::down;
    of->seen.info = {};
    of->seen.reason = std::move(reason);
    seen = of->seen;
  }
  if (watch_) watch_(seen);
  return false;
}

bool worker_table::was_up() const {
  const std::lock_guard lock(mutex_);
  return was_up_;
}

std::string worker_table::model() const {
  const std::lock_guard lock(mutex_);
  return model_;
}

// ---- queries

worker_actor worker_table::actor_of(worker_key key) const {
  const std::lock_guard lock(mutex_);
  const auto* of = live(workers_, key);
  return of ? of->worker : worker_actor();
}

std::optional<worker_key> worker_table::key_of(const caf::actor_addr& worker) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, of] : workers_)
    if (of.worker && of.worker == worker) return key;
  return {};
}

std::optional<inference::engine_info> worker_table::offered_by(worker_key key) const {
  const std::lock_guard lock(mutex_);
  const auto* of = live(workers_, key);
  return of && is_up(of->seen.state) ? std::optional(of->seen.info) : std::nullopt;
}

std::vector<worker_key> worker_table::to_be_cleared() const {
  const std::lock_guard lock(mutex_);
  std::vector<worker_key> drained;
  bool elsewhere = false;
  for (const auto& [key, of] : workers_) {
    if (of.seen.state == worker_state::down) continue;
    elsewhere |= !of.drained;
    if (of.drained) drained.push_back(key);
  }
  if (!elsewhere) drained.clear();
  return drained;
}

std::vector<worker_view> worker_table::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<worker_view> views;
  views.reserve(workers_.size());
  for (const auto& [key, of] : workers_) views.push_back(of.seen);
  return views;
}

// ---- queries that must not wait

void worker_table::close(closed_for why) {
  const std::lock_guard lock(mutex_);
  closed_ = why;
}

readiness worker_table::ready() const {
  const std::lock_guard lock(mutex_);
  if (closed_ != closed_for::nothing) return not_ready(static_cast<unready>(closed_));
  bool loading = false;
  bool draining = false;
  for (const auto& [key, of] : workers_) {
    if (of.seen.state == worker_state::up && of.seen.info.slots > 0)
      return {
          true, "",
          std::max(0.0, std::chrono::duration<double>(next_slot_.load() - std::chrono::steady_clock::now()).count())};
    loading |= of.seen.state == worker_state::loading;
    draining |= of.seen.state == worker_state::draining;
  }
  if (loading) return not_ready(unready::loading);
  return not_ready(draining ? unready::drained : unready::no_worker);
}

std::optional<inference::engine_info> worker_table::engine() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, of] : workers_)
    if (is_up(of.seen.state)) return of.seen.info;
  return {};
}

void worker_table::let_go() {
  const std::lock_guard lock(mutex_);
  for (auto& [key, of] : workers_) of.worker = nullptr;
}

} // namespace parley::actors
