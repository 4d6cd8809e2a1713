#pragma once

#include "inference/engine.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace parley::actors {

/// Creates a worker's engine. Called on the engine's own thread. May take as long as loading a checkpoint takes, and
/// throws if it cannot be loaded.
using engine_factory = std::function<std::unique_ptr<inference::engine>(inference::engine::sink)>;

/// The only thread that touches an engine: loads it, passes it commands between two passes, and destroys it.
class engine_thread {
public:
  /// All functions are called on the engine's thread and must not block.
  struct listener {
    std::function<void(const inference::engine_info&)> up; ///< called first, once: the engine is loaded
    std::function<void(conversation::event&&)> event;
    std::function<void(std::string)> down; ///< called last, once: the engine could not be loaded or has thrown. Not
                                           ///< after `stop`.
    /// Called before each pass with the seconds that the thread has worked so far; may be empty.
    std::function<void(const inference::engine_capacity&, double busy_s)> load = {};
  };

  /// At most `max_commands` commands may wait for the next pass; `post` refuses more.
  /// `idle_after`: without work for so long, the engine is told, and again after as long.
  engine_thread(engine_factory make, listener tell, std::size_t max_commands,
                std::chrono::milliseconds idle_after = std::chrono::minutes(1));

  /// Stops and joins; waits for the pass (or the loading) in progress.
  ~engine_thread();

  engine_thread(const engine_thread&) = delete;
  engine_thread& operator=(const engine_thread&) = delete;

  /// Passes on a command. Returns false if the queue is full; `close_session`, which frees room, is accepted even then
  /// (there is at most one per session). After the engine's end, commands are dropped. Thread-safe, never blocks.
  bool post(conversation::command&& order);

  /// Makes the current pass the last one. Does not wait. Thread-safe.
  void stop();

private:
  void run();
  void serve(inference::engine& engine);

  engine_factory make_;
  listener tell_;
  const std::size_t max_commands_;
  const std::chrono::milliseconds idle_after_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<conversation::command> commands_;
  bool stopping_ = false;
  std::thread thread_;
};

} // namespace parley::actors
