#pragma once

#include "client/deadline_timer.hpp"
#include "client/load_scenario.hpp"
#include "client/server_url.hpp"

#include <boost/asio/io_context.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace parley::client {

/// Progress of a run, written by all threads.
struct load_progress {
  std::atomic<int> held{0}, most_held{0};
  std::atomic<std::int64_t> answers{0}, over{0};

  /// A participant holds a session, or no longer does; `held_before` is its memory of the last call.
  void note(bool& held_before, bool holds) {
    if (std::exchange(held_before, holds) == holds) return;
    const int count = held += holds ? 1 : -1;
    auto most = most_held.load();
    while (most < count && !most_held.compare_exchange_weak(most, count)) {
    }
  }
};

/// What all participants of a run share.
struct load_world {
  std::vector<server_url> urls; ///< of one server or cluster
  load_habits habits;
  double end = 0; ///< end of the run, in its seconds
  std::chrono::steady_clock::time_point start;
  load_progress progress;

  double now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }

  std::chrono::steady_clock::time_point at(double time) const {
    return start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(time));
  }
};

/// One simulated person with a connection, whatever it speaks. Begins by itself at its time, and lives on the thread of
/// its io_context until that has ended.
class load_participant {
public:
  virtual ~load_participant() = default;
  load_participant(const load_participant&) = delete;
  load_participant& operator=(const load_participant&) = delete;

protected:
  load_participant(boost::asio::io_context& io, load_world& world, const load_scenario& role);

  /// Calls `woken`, unless it is over by then. Replaces an earlier time.
  void wake(double time);

  void tell_progress() { world_.progress.note(held_, holds_session()); }

  /// Its connection has ended, and nothing follows.
  void end();

  boost::asio::io_context& io_;
  load_world& world_;
  const load_scenario role_;

private:
  virtual void connect() = 0;
  virtual void woken(double now) = 0;
  virtual bool holds_session() const = 0;

  deadline_timer timer_;
  bool held_ = false, over_ = false;
};

} // namespace parley::client
