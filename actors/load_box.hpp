#pragma once

#include "inference/engine.hpp"

#include <mutex>
#include <utility>

namespace parley::actors {

/// The newest load of an engine, on its way from the engine's thread to its worker: what was not looked at in time is
/// replaced. Thread-safe.
class load_box {
public:
  struct measured {
    inference::engine_load load;
    double busy_s = 0; ///< that the engine's thread has worked so far
  };

  /// True when nothing waited to be looked at: the worker is to be woken.
  bool put(measured now) {
    const std::lock_guard lock(mutex_);
    now_ = now;
    return !std::exchange(waits_, true);
  }

  measured take() {
    const std::lock_guard lock(mutex_);
    waits_ = false;
    return now_;
  }

private:
  std::mutex mutex_;
  measured now_;
  bool waits_ = false;
};

} // namespace parley::actors
