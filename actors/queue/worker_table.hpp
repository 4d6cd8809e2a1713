#pragma once

#include "actors/gateway_api.hpp"
#include "actors/messages.hpp"
#include "actors/worker/worker_capacity.hpp"
#include "inference/engine.hpp"

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

/// One worker as the server knows it.
struct worker_view {
  worker_key key = 0;
  worker_state state = worker_state::loading;
  std::string node; ///< where it runs; empty = in this process
  std::string device;
  inference::engine_info info; ///< since `up`
  std::string reason;          ///< of `down`
};

/// Why nobody new is taken.
enum class closed_for : std::uint8_t { nothing, shutdown, queue_ended };

/// What a server core knows of its workers at this moment: the one table of them. The queue manager writes it; others read it for answers that may not wait:
/// GET /ready, and what a new session is told it can do. Thread-safe.
class worker_table {
public:
  using watcher = std::function<void(const worker_view&)>;

  /// `watch` is called after each change of a worker, on the thread that made it, without a lock held; it may not block.
  explicit worker_table(watcher watch) : watch_(std::move(watch)) {}

  // ---- what happens to workers; those that are not there, or are down, are left alone

  /// It was started. Takes the place of a lost one of its node, if there is such: that one's key.
  std::optional<worker_key> join(worker_key key, worker_actor worker, std::string node, std::string device);

  /// It has so many slots; the first time, it is loaded with that. How many of them may be filled: none while it is drained. None for unknown ones.
  std::optional<int> offer(worker_key key, const inference::engine_info& info);

  /// Whether it takes new sessions. One that leaves never does again. False for unknown ones.
  bool drain(worker_key key, bool drained);

  /// It was asked to end, and does when it has no session. False for unknown ones.
  bool leave(worker_key key);

  /// The capacity that it has reported, and what it told before.
  struct capacities {
    worker_capacity before;
    worker_capacity now;
  };
  std::optional<capacities> report(worker_key key, worker_capacity told);

  /// It has ended: of its own accord, then nothing is known of it any more and the answer is true, or for that reason.
  bool lose(worker_key key, bool left, std::string reason);

  // ---- who is there

  /// Null when it is not there, or down.
  worker_actor actor_of(worker_key key) const;
  std::optional<worker_key> key_of(const caf::actor_addr& worker) const;

  /// What it offered last; none while it loads, and for unknown ones.
  std::optional<inference::engine_info> offered_by(worker_key key) const;

  /// Those that are there and drained, if any other worker is there that is not.
  std::vector<worker_key> to_be_cleared() const;

  std::vector<worker_view> all() const;

  // ---- for answers at once

  /// From now on nobody new is taken.
  void close(closed_for why);

  /// Whether some worker that is up has slots, and if not, why.
  readiness ready() const;

  /// Whether some worker has ever been up.
  bool was_up() const;

  /// The capabilities of a worker that is up: all workers of a server load the same checkpoint.
  std::optional<inference::engine_info> engine() const;

  /// Lets go of all workers, so that their system can end.
  void let_go();

private:
  struct row {
    worker_view seen;
    worker_actor worker;      ///< null when it is down
    worker_capacity capacity; ///< as it was told last
    bool drained = false;
    bool leaving = false;
  };

  row* live(worker_key key);
  const row* live(worker_key key) const;

  const watcher watch_;
  mutable std::mutex mutex_;
  std::map<worker_key, row> workers_;
  closed_for closed_ = closed_for::nothing;
  bool was_up_ = false;
};

} // namespace parley::actors
