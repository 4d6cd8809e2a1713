#include "actors/deadline_clock.hpp"

#include <algorithm>

namespace parley::actors {
namespace {

constexpr std::chrono::milliseconds apart{4}; ///< between two times at which it wakes

} // namespace

deadline_clock::deadline_clock() : thread_([this] { run(); }) {}

deadline_clock::~deadline_clock() {
  stop();
}

void deadline_clock::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    waiting_ = {};
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void deadline_clock::wake(caf::weak_actor_ptr who, time_point when) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    waiting_.push({when, std::move(who)});
    if (when >= next_) return;
  }
  changed_.notify_one();
}

std::vector<caf::weak_actor_ptr> deadline_clock::take_due(time_point now) {
  std::vector<caf::weak_actor_ptr> out;
  for (; !waiting_.empty() && waiting_.top().when <= now; waiting_.pop()) out.push_back(waiting_.top().who);
  return out;
}

void deadline_clock::run() {
  const auto word = caf::make_message(timer_due{});
  time_point not_before{};
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    next_ = waiting_.empty() ? time_point::max() : std::max(waiting_.top().when, not_before);
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) {
      if (waiting_.empty())
        changed_.wait(lock);
      else
        changed_.wait_until(lock, next_);
      continue;
    }
    const auto due = take_due(now);
    not_before = now + apart;
    lock.unlock();
    for (const auto& each : due)
      if (const auto live = caf::actor_cast<caf::strong_actor_ptr>(each))
        live->enqueue(nullptr, caf::make_message_id(), word, nullptr);
    lock.lock();
  }
}

} // namespace parley::actors
