#pragma once

#include "inference/engine.hpp"

#include <mutex>
#include <utility>

namespace parley::actors {

/// The newest load of an engine, on its way from the engine's thread to its worker: a report that is not read in time
/// is replaced. Thread-safe.
class latest_capacity {
public:
  struct measured {
    inference::engine_capacity capacity;
    double busy_s = 0; ///< seconds that the engine's thread has worked so far
  };

  /// Returns true if the worker must be woken: no report was waiting, or the number of slots has changed.
  bool put(measured now) {
    const std::lock_guard lock(mutex_);
    const bool other_slots = now.capacity.slots != now_.capacity.slots;
    now_ = now;
    return !std::exchange(waits_, true) || other_slots;
  }

  int slots() const {
    const std::lock_guard lock(mutex_);
    return now_.capacity.slots;
  }

  measured take() {
    const std::lock_guard lock(mutex_);
    waits_ = false;
    return now_;
  }

private:
  mutable std::mutex mutex_;
  measured now_;
  bool waits_ = false;
};

} // namespace parley::actors
