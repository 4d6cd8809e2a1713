#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace parley::app {

/// What happens to a service that its main thread has to know. May be called from any thread; never blocks.
class service_news {
public:
  enum class what { worker_up, worker_down, broken, asked_to_reload, asked_to_stop };
  struct item {
    what kind;
    std::string reason; ///< only for `worker_down` and `broken`
  };

  void worker_up() { post({what::worker_up, {}}); }
  void worker_down(std::string reason) { post({what::worker_down, std::move(reason)}); }
  void broken(std::string reason) { post({what::broken, std::move(reason)}); }
  void ask_to_reload() { post({what::asked_to_reload, {}}); }
  void ask_to_stop() { post({what::asked_to_stop, {}}); }

  /// Returns nothing if the time runs out first.
  std::optional<item> wait_until(std::chrono::steady_clock::time_point end) {
    std::unique_lock lock(mutex_);
    if (!come_.wait_until(lock, end, [&] { return !items_.empty(); })) return std::nullopt;
    auto next = std::move(items_.front());
    items_.pop_front();
    return next;
  }

  item wait() {
    std::unique_lock lock(mutex_);
    come_.wait(lock, [&] { return !items_.empty(); });
    auto next = std::move(items_.front());
    items_.pop_front();
    return next;
  }

private:
  void post(item news) {
    {
      const std::lock_guard lock(mutex_);
      items_.push_back(std::move(news));
    }
    come_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable come_;
  std::deque<item> items_;
};

} // namespace parley::app
