#pragma once

#include "actors/front_door.hpp"
#include "actors/queue_line.hpp"
#include "inference/engine.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace parley::actors {

/// `draining`: up, but takes no new sessions.
enum class worker_state : std::uint8_t { loading, up, draining, down };

/// One worker as the house knows it.
struct worker_view {
  worker_key key = 0;
  worker_state state = worker_state::loading;
  std::string node; ///< where it runs; empty = in this process
  std::string device;
  inference::engine_info info; ///< since `up`
  std::string reason;          ///< of `down`
};

/// What a house knows of its workers at this moment, for answers that may not wait: GET /ready, and what a new session
/// is told it can do. Thread-safe.
class worker_board {
public:
  using watcher = std::function<void(const worker_view&)>;

  /// `watch` is called after each `set`, on the thread that made it, without a lock held; it may not block.
  explicit worker_board(watcher watch) : watch_(std::move(watch)) {}

  void set(const worker_view& now);

  /// It has left of its own accord, or another one has taken its place.
  void remove(worker_key key);

  /// From now on nobody new is taken, for the reason given.
  void close(std::string reason);

  /// Whether some worker that is up has slots, and if not, why.
  readiness ready() const;

  /// Whether some worker has ever been up.
  bool was_up() const;

  /// Of a worker that is up: all of a house load the same checkpoint.
  std::optional<inference::engine_info> engine() const;

  std::vector<worker_view> all() const;

private:
  const watcher watch_;
  mutable std::mutex mutex_;
  std::map<worker_key, worker_view> workers_;
  std::string closed_; ///< why; empty = open
  bool was_up_ = false;
};

} // namespace parley::actors
