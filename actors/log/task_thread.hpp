#pragma once

#include "actors/logger.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace parley::actors {

/// A thread that does one task after the other. Thread-safe.
class task_thread {
public:
  using task = std::function<void()>;

  struct options {
    std::chrono::milliseconds pause = std::chrono::hours(1);
    task idle = {}; ///< if given, called on the thread about once in `pause`
    std::chrono::milliseconds gather{
        0}; ///< how long the first task waits for others, so that they wake the thread once
  };

  /// A task that throws, because memory is short, ends alone.
  explicit task_thread(options how) : how_(std::move(how)), thread_([this] { work(); }) {}

  /// Does what is left first.
  ~task_thread() { finish(); }
  task_thread(const task_thread&) = delete;
  task_thread& operator=(const task_thread&) = delete;

  enum class when { soon, at_once };

  /// False after `finish`: then it will not be done. `at_once`: it and those before it do not wait for others.
  bool post(task what, when due = when::soon) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return false;
      tasks_.push_back(std::move(what));
      const bool hurry = due == when::at_once && !std::exchange(hurries_, true);
      if (tasks_.size() > 1 && !hurry) return true; // it has been woken, or is busy and looks again
    }
    wake_.notify_one();
    return true;
  }

  /// Does what is left and ends. A second call does nothing.
  void finish() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

private:
  void work() {
    std::vector<task> some;
    std::unique_lock lock(mutex_);
    while (true) {
      if (!wake_.wait_for(lock, how_.pause, [this] { return stopping_ || !tasks_.empty(); })) {
        lock.unlock();
        if (how_.idle) attempt(how_.idle);
        lock.lock();
        continue;
      }
      if (how_.gather.count() > 0) wake_.wait_for(lock, how_.gather, [this] { return stopping_ || hurries_; });
      hurries_ = false;
      if (tasks_.empty()) return;
      some.swap(tasks_);
      lock.unlock();
      for (auto& each : some) attempt(std::exchange(each, {}));
      some.clear();
      lock.lock();
    }
  }

  static void attempt(const task& one) {
    try {
      one();
    } catch (const std::exception& problem) {
      log()->error("a task of journal.dir fails: {}", problem.what());
    }
  }

  const options how_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<task> tasks_;
  bool hurries_ = false; ///< one of the tasks is not to wait
  bool stopping_ = false;
  std::thread thread_;
};

} // namespace parley::actors
