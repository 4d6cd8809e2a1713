#pragma once

#include "inference/engine.hpp"

#include <mutex>
#include <utility>

namespace parley::actors {

/// The newest load of an engine, on its way from the engine's thread to its worker: what was not taken in time is
/// replaced. Thread-safe.
class load_box {
public:
  struct measured {
    inference::engine_load load;
    double busy_s = 0; ///< that the engine's thread has worked so far
  };

  /// True when the worker is to be woken: nothing waited to be taken, or the slots are others than before.
  bool put(measured now) {
    const std::lock_guard lock(mutex_);
    const bool other_slots = now.load.slots != now_.load.slots;
    now_ = now;
    return !std::exchange(waits_, true) || other_slots;
  }

  int slots() const {
    const std::lock_guard lock(mutex_);
    return now_.load.slots;
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
