#include "actors/deadline_clock.hpp"

#include "actors/logger.hpp"

#include <algorithm>
#include <exception>

namespace parley::actors {
namespace {

constexpr std::chrono::milliseconds apart{4}; ///< between two times at which it wakes
constexpr std::size_t least_swept = 1024;

} // namespace

deadline_clock::deadline_clock() : sweep_at_(least_swept), thread_([this] { run(); }) {}

deadline_clock::~deadline_clock() {
  stop();
}

void deadline_clock::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    waiting_.clear();
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::size_t deadline_clock::pending() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void deadline_clock::wake(std::shared_ptr<const wake_target> who, time_point when) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    if (waiting_.size() >= sweep_at_) sweep();
    waiting_.push_back({when, std::move(who)});
    std::push_heap(waiting_.begin(), waiting_.end(), later);
    if (when >= next_) return;
  }
  changed_.notify_one();
}

/// Forgets the times of actors that have ended, whenever there are twice as many as were left the last time.
void deadline_clock::sweep() {
  std::erase_if(waiting_, [](const entry& each) { return each.who->gone(); });
  std::make_heap(waiting_.begin(), waiting_.end(), later);
  sweep_at_ = std::max(least_swept, 2 * waiting_.size());
}

/// Adds whom to wake to `out`. Takes no memory in the middle: what is due is handed out, or stays.
void deadline_clock::take_due(time_point now, std::vector<std::shared_ptr<const wake_target>>& out) {
  out.reserve(waiting_.size());
  while (!waiting_.empty() && waiting_.front().when <= now) {
    std::pop_heap(waiting_.begin(), waiting_.end(), later);
    out.push_back(std::move(waiting_.back().who));
    waiting_.pop_back();
  }
}

void deadline_clock::run() {
  const auto word = caf::make_message(timer_due{});
  time_point not_before{};
  std::vector<std::shared_ptr<const wake_target>> due;
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    next_ = waiting_.empty() ? time_point::max() : std::max(waiting_.front().when, not_before);
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) {
      if (waiting_.empty())
        changed_.wait(lock);
      else
        changed_.wait_until(lock, next_);
      continue;
    }
    not_before = now + apart;
    try {
      take_due(now, due);
    } catch (const std::exception& problem) { // out of memory: they stay, and are tried again
      log()->error("deadlines: {}", problem.what());
    }
    lock.unlock();
    for (const auto& each : due) {
      try {
        if (const auto live = each->actor()) live->enqueue(nullptr, caf::make_message_id(), word, nullptr);
      } catch (const std::exception& problem) { // out of memory, for this one
        log()->error("a deadline is lost: {}", problem.what());
      }
    }
    due.clear();
    lock.lock();
  }
}

} // namespace parley::actors
