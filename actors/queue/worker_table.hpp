#pragma once

#include "actors/capacity/worker_capacity.hpp"
#include "actors/gateway_api.hpp"
#include "actors/messages.hpp"
#include "inference/engine.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parley::actors {

/// `draining`: up, but accepts no new sessions.
enum class worker_state : std::uint8_t { loading, up, draining, down };

/// Its name in GET /status.
constexpr std::string_view name_of(worker_state state) {
  constexpr std::array<std::string_view, 4> names{"loading", "up", "draining", "down"};
  return names[static_cast<std::size_t>(state)];
}

/// Whether its engine is loaded and running.
constexpr bool is_up(worker_state state) {
  return state == worker_state::up || state == worker_state::draining;
}

/// One worker as the server knows it.
struct worker_view {
  worker_key key = 0;
  worker_state state = worker_state::loading;
  std::string node; ///< where it runs; empty = in this process
  std::string device;
  inference::engine_info info; ///< since it was first `up`
  std::string reason;          ///< why it is `down`
};

/// Why no new sessions are accepted.
enum class closed_for : std::uint8_t { nothing, shutdown, queue_ended };

/// The one table of a server's workers. The queue manager writes it; others read it for answers that must not wait: GET
/// /ready, and the capabilities that a new session needs. Thread-safe.
class worker_table {
public:
  using watcher = std::function<void(const worker_view&)>;

  /// `watch` is called after each change of a worker, on the thread that made it, without a lock; it must not block.
  explicit worker_table(watcher watch) : watch_(std::move(watch)) {}

  // ---- changes; calls for unknown workers and for those that are down change nothing

  /// How many lost workers are listed; the one that was lost first makes room for more.
  static constexpr std::size_t most_lost = 256;

  /// A worker was started. If it replaces the lost worker of the same node, or too many are lost, the key of the one that is
  /// listed no more is returned.
  std::optional<worker_key> join(worker_key key, worker_actor worker, std::string node, std::string device);

  /// The worker offers `info.slots`; its first offer means that it is loaded. Returns how many may be filled: 0 while
  /// it is drained, none if it is unknown.
  std::optional<int> offer(worker_key key, const inference::engine_info& info);

  /// Stops or resumes giving the worker new sessions; one that is leaving is never resumed. False if it is unknown.
  bool drain(worker_key key, bool drained);

  /// The worker was asked to stop, and ends once it has no session. False if it is unknown.
  bool leave(worker_key key);

  /// A report and the one before it.
  struct capacities {
    worker_capacity before;
    worker_capacity now;
  };
  std::optional<capacities> report(worker_key key, worker_capacity told);

  /// The worker has ended. If it left on purpose, it is forgotten: returns true. Otherwise it stays listed as down,
  /// with the reason.
  bool lose(worker_key key, bool left, std::string reason);

  /// When a session that comes now would get a slot.
  void expect_slot(std::chrono::steady_clock::time_point at) { next_slot_.store(at, std::memory_order_relaxed); }

  // ---- queries

  /// Null if it is unknown or down.
  worker_actor actor_of(worker_key key) const;
  std::optional<worker_key> key_of(const caf::actor_addr& worker) const;

  /// Its last offer; none while it loads or if it is unknown.
  std::optional<inference::engine_info> offered_by(worker_key key) const;

  /// Drained workers whose sessions can move, because some other worker is not drained.
  std::vector<worker_key> to_be_cleared() const;

  std::vector<worker_view> all() const;

  // ---- queries that must not wait

  /// Accept no new sessions from now on.
  void close(closed_for why);

  /// Whether any worker that is up has slots, and if not, why.
  readiness ready() const;

  /// Whether any worker has ever been up.
  bool was_up() const;

  /// The name of the checkpoint that was offered last, also when nobody is up any more; empty before the first offer.
  std::string model() const;

  /// The capabilities of a worker that is up: all workers of a server load the same checkpoint.
  std::optional<inference::engine_info> engine() const;

  /// Releases every reference to a worker, so that the actor system can end.
  void let_go();

private:
  struct row {
    worker_view seen;
    worker_actor worker;      ///< null if it is down
    worker_capacity capacity; ///< its last report
    bool drained = false;
    bool leaving = false;
  };

  const watcher watch_;
  mutable std::mutex mutex_;
  std::map<worker_key, row> workers_;
  std::atomic<std::chrono::steady_clock::time_point> next_slot_{};
  closed_for closed_ = closed_for::nothing;
  bool was_up_ = false;
  std::string model_;
};

} // namespace parley::actors
