#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace parley::base {

/// A value that is replaced while others use it: each keeps the one that it got. Thread-safe.
template<class T>
class current {
public:
  explicit current(std::shared_ptr<T> first) : value_(std::move(first)) {}

  std::shared_ptr<T> get() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }

  void set(std::shared_ptr<T> next) {
    const std::lock_guard lock(mutex_);
    value_.swap(next); // the old one ends after the lock
  }

private:
  mutable std::mutex mutex_;
  std::shared_ptr<T> value_;
};

} // namespace parley::base
