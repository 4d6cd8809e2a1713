#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <variant>

namespace parley::app {

/// A worker can take sessions.
struct worker_up {};

/// A worker's engine could not be loaded or has thrown.
struct worker_down {
  std::string reason;
};

/// SIGTERM or SIGINT came.
struct stop_asked {};

using notice = std::variant<worker_up, worker_down, stop_asked>;

/// Where the threads of a server leave word for the main thread, which waits for it. Thread-safe; `post` does not block.
class noticeboard {
public:
  void post(notice news) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(news));
    }
    wake_.notify_one();
  }

  /// The next notice, in the order in which they came.
  notice wait() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return !waiting_.empty(); });
    auto news = std::move(waiting_.front());
    waiting_.pop_front();
    return news;
  }

private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<notice> waiting_; ///< a handful in a process's life: workers and signals
};

} // namespace parley::app
