#pragma once

#include "actors/messages.hpp"

#include <caf/all.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace parley::actors {

/// An actor that is woken as long as it lives. Pending times hold this, and not the actor: CAF keeps the memory of an actor for
/// as long as anybody holds a pointer to it, even a weak one. Thread-safe.
class wake_target {
public:
  explicit wake_target(caf::weak_actor_ptr who) : who_(std::move(who)) {}

  /// The actor ends.
  void let_go() {
    const std::lock_guard lock(mutex_);
    who_ = nullptr;
  }

  bool gone() const {
    const std::lock_guard lock(mutex_);
    return !who_;
  }

  /// Null if it has ended.
  caf::strong_actor_ptr actor() const {
    const std::lock_guard lock(mutex_);
    return caf::actor_cast<caf::strong_actor_ptr>(who_);
  }

private:
  mutable std::mutex mutex_;
  caf::weak_actor_ptr who_;
};

/// Sends actors `timer_due` at the times that they ask for, on one thread for all. CAF's own clock wakes its thread for every
/// time that it is told, and again for each of them; with thousands of sessions, whose deadlines move on all the time, that
/// is an eighth of the server's work. This one wakes for the earliest time only, and for all that is due at once. Thread-safe.
class deadline_clock {
public:
  using time_point = std::chrono::steady_clock::time_point;

  deadline_clock();
  ~deadline_clock();
  deadline_clock(const deadline_clock&) = delete;
  deadline_clock& operator=(const deadline_clock&) = delete;

  /// `timer_due` follows at `when`, or up to 4 ms later, unless the actor has ended by then.
  void wake(std::shared_ptr<const wake_target> who, time_point when);

  /// How many times are pending; those of actors that have ended count until they are noticed.
  std::size_t pending() const;

  /// Sends nothing from now on. Call while the actors' system still exists.
  void stop();

private:
  struct entry {
    time_point when;
    std::shared_ptr<const wake_target> who;
  };
  static bool later(const entry& a, const entry& b) { return a.when > b.when; }

  void run();
  void sweep();
  void take_due(time_point now, std::vector<std::shared_ptr<const wake_target>>& out);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<entry> waiting_;          ///< a heap, the earliest on top
  std::size_t sweep_at_ = 0;            ///< pending times
  time_point next_ = time_point::max(); ///< when the thread wakes by itself
  bool stopped_ = false;
  std::thread thread_;
};

} // namespace parley::actors
