#pragma once

#include "inference/vocabulary.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace parley::inference {

/// Running sessions go first: for a thread that prepares something for them, beside the engine's. Called on that thread.
void lower_thread_priority();

/// Work of a session that is none of the model's, done elsewhere than on the engine's thread. Once `done`, other threads
/// may read what came of it.
struct helper_job {
  virtual ~helper_job() = default;

  /// Goes on for a short while, on one of the threads. Returns true once it is done, or has failed. `wanted` says whether
  /// anybody still waits for it.
  virtual bool work(const std::function<bool()>& wanted) noexcept = 0;

  session_id owner = 0;
  std::atomic<bool> done = false;
};

/// A few threads of low priority that do such jobs. Sessions take turns, so that none waits for all jobs of another. A
/// job that nobody holds any more is abandoned. Only the engine's thread calls it.
class helper_threads {
public:
  /// At most `bound` jobs wait for a thread; more are rejected.
  helper_threads(int threads, std::size_t bound);

  /// Waits for what the threads are doing.
  ~helper_threads();

  helper_threads(const helper_threads&) = delete;
  helper_threads& operator=(const helper_threads&) = delete;

  /// Returns false if too many jobs are waiting.
  bool take(const std::shared_ptr<helper_job>& fresh);

  /// The number of finished jobs.
  std::uint64_t finished() const { return finished_; }

  /// Waits until more than `counted` jobs are finished, but no longer than `most`.
  void wait(std::uint64_t counted, std::chrono::milliseconds most);

private:
  /// One session's jobs, oldest first.
  struct line {
    session_id owner;
    std::deque<std::weak_ptr<helper_job>> jobs;
    bool busy = false; ///< a thread is working on one of them
  };

  void work();
  std::list<line>::iterator free_line();

  const std::size_t bound_;
  std::mutex mutex_;
  std::condition_variable wake_, one_done_;
  std::list<line> lines_; ///< the next one to be served comes first
  std::size_t waiting_ = 0;
  std::atomic<std::uint64_t> finished_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

} // namespace parley::inference
