#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>

namespace parley::base {

/// Limits the log to one line per interval, or a few, for events that outsiders can repeat at will. Time is an
/// argument. Thread-safe.
class log_throttle {
public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit log_throttle(std::chrono::steady_clock::duration interval, std::size_t lines = 1)
      : interval_(interval), lines_(lines) {}

  /// Nothing = do not log now; otherwise the number of lines suppressed since the last one.
  std::optional<std::size_t> pass(time_point now) {
    const std::lock_guard lock(mutex_);
    if (!next_ || now >= *next_) {
      next_ = now + interval_;
      passed_ = 0;
    }
    if (passed_ == lines_) {
      ++held_back_;
      return std::nullopt;
    }
    ++passed_;
    return std::exchange(held_back_, 0);
  }

private:
  const std::chrono::steady_clock::duration interval_;
  const std::size_t lines_;
  std::mutex mutex_;
  std::optional<time_point> next_;
  std::size_t passed_ = 0; ///< in the current interval
  std::size_t held_back_ = 0;
};

} // namespace parley::base
