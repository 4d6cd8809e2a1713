#pragma once

#include "inference/engine.hpp"

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace parley::actors {

/// Makes the engine of a worker. Called on the engine's own thread; may take as long as a checkpoint takes to load, and
/// throw when it can't be.
using engine_factory = std::function<std::unique_ptr<inference::engine>(inference::engine::sink)>;

/// The one thread that touches an engine: it loads it, hands it the commands between two passes, and ends it.
class engine_thread {
public:
  /// All are called on the engine's thread and may not block.
  struct listener {
    std::function<void(const inference::engine_info&)> up; ///< first, once: the engine is loaded
    std::function<void(inference::event&&)> event;
    std::function<void(std::string)> down; ///< last, once: it could not be loaded or has thrown. Not after `stop`.
    /// Before each pass, with the seconds that the thread has worked so far; may be empty.
    std::function<void(const inference::engine_load&, double busy_s)> load = {};
  };

  /// `max_inbox` commands wait for the next pass; `post` refuses more (policy: reject).
  engine_thread(engine_factory make, listener tell, std::size_t max_inbox);

  /// Stops and joins; waits for the pass (or the loading) in progress.
  ~engine_thread();

  engine_thread(const engine_thread&) = delete;
  engine_thread& operator=(const engine_thread&) = delete;

  /// Hands a command over. False when the inbox is full; `close_session`, which frees, is taken even then (there is at
  /// most one of a session). After the end of the engine commands go nowhere. Thread-safe, never blocks.
  bool post(inference::command&& order);

  /// No pass after the present one. Does not wait. Thread-safe.
  void stop();

private:
  void run();
  void serve(inference::engine& engine);

  engine_factory make_;
  listener tell_;
  const std::size_t max_inbox_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<inference::command> inbox_;
  bool stopping_ = false;
  std::thread thread_;
};

} // namespace parley::actors
