#pragma once

#include "actors/messages.hpp"

#include <caf/all.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

namespace parley::actors {

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
  void wake(caf::weak_actor_ptr who, time_point when);

  /// Sends nothing from now on. Call while the actors' system still exists.
  void stop();

private:
  struct entry {
    time_point when;
    caf::weak_actor_ptr who;
  };
  struct later {
    bool operator()(const entry& a, const entry& b) const { return a.when > b.when; }
  };

  void run();
  std::vector<caf::weak_actor_ptr> take_due(time_point now);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<entry, std::vector<entry>, later> waiting_;
  time_point next_ = time_point::max(); ///< when the thread wakes by itself
  bool stopped_ = false;
  std::thread thread_;
};

} // namespace parley::actors
