#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>

namespace parley::net {

/// Wakes a connection's strand from any thread. Does nothing once the connection is gone, so its holders may outlive
/// the connection and the server. Thread-safe.
class doorbell {
public:
  /// `post` passes work to the strand and never runs it inline.
  explicit doorbell(std::function<void()> post) : post_(std::move(post)) {}

  /// Posts once, and again only after `answered`.
  void ring() {
    const std::lock_guard lock(mutex_);
    if (post_ && !rung_.exchange(true)) post_();
  }

  /// Call on the strand, before checking what there is to do. Never waits for other threads.
  void answered() { rung_ = false; }

  /// Call when the connection goes away: no call of `post` begins after this.
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
