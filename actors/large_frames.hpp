#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace parley::actors {

/// Threads for large frames of clients, whose decoding takes so long that it would keep others waiting on an I/O thread or
/// on one of CAF's. Fair: at most one frame of an owner (an API key, or an address) is at work at a time, and owners take
/// turns. What waits is bounded by what each connection may read ahead. Thread-safe.
class large_frames {
  struct queue;

public:
  /// Held while a frame is at work; its end lets the next one begin.
  class turn;
  using task = std::function<void(std::shared_ptr<turn>)>;

  /// The frames of one connection, which keep their order. Once one waits here, all that follow have to, small ones too.
  class strand {
  public:
    strand(std::shared_ptr<queue> in, std::string owner) : queue_(std::move(in)), owner_(std::move(owner)) {}

    /// Whether none of its frames waits or is at work.
    bool idle() const { return unfinished_.load(std::memory_order_acquire) == 0; }

  private:
    friend queue;
    friend class large_frames;

    const std::shared_ptr<queue> queue_;
    const std::string owner_;
    std::atomic<std::size_t> unfinished_{0};
    std::deque<task> waiting_; ///< guarded by the queue
    bool at_work_ = false;     ///< likewise
  };

  explicit large_frames(std::size_t threads);
  ~large_frames();
  large_frames(const large_frames&) = delete;
  large_frames& operator=(const large_frames&) = delete;

  std::shared_ptr<strand> open(std::string owner) const { return std::make_shared<strand>(queue_, std::move(owner)); }

  /// Calls `work` on one of the threads. The turn that it gets may outlive the call.
  static void add(const std::shared_ptr<strand>& to, task work);

  /// Gives the turn back, and has `work` done in the next one of its strand.
  static void again(std::shared_ptr<turn>&& instead_of, task work);

  /// Whether this thread is one of a `large_frames`.
  static bool here();

  /// Drops what waits, and joins the threads. The destructor calls it.
  void stop();

private:
  void work() const;

  const std::shared_ptr<queue> queue_;
  std::vector<std::thread> threads_;
};

} // namespace parley::actors
