#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>

namespace parley::net {

/// Wakes the strand of a connection from any thread, and is silent once the connection is gone, so that its holders may
/// outlive the connection and the server. Thread-safe.
class doorbell {
public:
  /// `post` hands work to the strand and never runs it inline.
  explicit doorbell(std::function<void()> post) : post_(std::move(post)) {}

  /// Rings once; rings again only after `answered`.
  void ring() {
    const std::lock_guard lock(mutex_);
    if (post_ && !rung_.exchange(true)) post_();
  }

  /// On the strand, before looking what there is to do. Waits for nobody who rings.
  void answered() { rung_ = false; }

  /// The connection goes: no call of `post` begins after this.
  void detach() {
    const std::lock_guard lock(mutex_);
    post_ = nullptr;
  }

private:
  std::mutex mutex_;
  std::function<void()> post_;
  std::atomic<bool> rung_ = false;
};

} // namespace parley::net
