#pragma once

#include "base/ring_queue.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace parley::net {

/// What a client is told last.
struct close_frame {
  std::uint16_t code;
  std::string reason;
};

/// What waits for one client, of which one is being written. At the limit, what waits is dropped and the connection is closed
/// with 1008. Not thread-safe.
template<class Item>
class outbox_of {
public:
  /// `bound` in bytes, including the one being written. A larger one is accepted if nothing else waits.
  explicit outbox_of(std::size_t bound) : bound_(bound) {}

  /// Ignored once a close was requested.
  void push(Item what, std::size_t bytes) {
    if (closing_) return;
    if (bytes_ > 0 && bytes_ + bytes > bound_) return overflow();
    bytes_ += bytes;
    waiting_.push_back({std::move(what), bytes});
  }

  /// Drops what waits and closes, because what it holds is too much.
  void overflow() {
    if (closing_) return;
    waiting_.clear();
    bytes_ = in_flight_bytes_;
    close(1008, "the client reads too slowly");
  }

  /// Sends the close frame after what is queued now. Only the first close counts.
  void close(std::uint16_t code, std::string reason) {
    if (closing_) return;
    closing_ = true;
    close_ = close_frame{code, std::move(reason)};
  }

  /// The next one to write; none if one is in flight or none waits.
  std::optional<Item> next() {
    if (in_flight_ || waiting_.empty()) return std::nullopt;
    auto [what, bytes] = std::move(waiting_.front());
    waiting_.pop_front();
    in_flight_ = true;
    in_flight_bytes_ = bytes;
    return std::move(what);
  }

  /// Call when what the last `next` returned has been written.
  void written() {
    in_flight_ = false;
    bytes_ -= std::exchange(in_flight_bytes_, 0);
  }

  /// Returns the close frame, once, when everything before it has been written.
  std::optional<close_frame> take_close() {
    if (in_flight_ || !waiting_.empty()) return std::nullopt;
    return std::exchange(close_, std::nullopt);
  }

  bool closing() const { return closing_; }
  std::size_t bytes() const { return bytes_; }

private:
  struct entry {
    Item what;
    std::size_t bytes = 0;
  };

  std::size_t bound_;
  std::size_t bytes_ = 0; ///< waiting and in flight
  std::size_t in_flight_bytes_ = 0;
  bool in_flight_ = false;
  bool closing_ = false;
  base::ring_queue<entry> waiting_;
  std::optional<close_frame> close_;
};

using text_frame = std::shared_ptr<const std::string>;

} // namespace parley::net
