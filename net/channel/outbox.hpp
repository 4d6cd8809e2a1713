#pragma once

#include "base/ring_queue.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace parley::net {

/// The frames waiting to be written to one WebSocket, with one write in flight. At the limit, waiting frames are
/// dropped and the connection is closed with 1008. Not thread-safe.
class outbox {
public:
  using frame = std::shared_ptr<const std::string>;

  struct close_frame {
    std::uint16_t code;
    std::string reason;
  };

  /// `bound` in bytes, including the frame being written. A larger frame is accepted if nothing else waits.
  explicit outbox(std::size_t bound) : bound_(bound) {}

  /// Ignored once a close was requested.
  void push(frame text);

  /// Drops what waits and closes, because what it holds is too much.
  void overflow();

  /// Sends the close frame after what is queued now. Only the first close counts.
  void close(std::uint16_t code, std::string reason);

  /// The next frame to write; null if one is in flight or none waits.
  frame next();

  /// Call when the frame returned by the last `next` has been written.
  void written();

  /// Returns the close frame, once, when everything before it has been written.
  std::optional<close_frame> take_close();

  bool closing() const { return closing_; }
  std::size_t bytes() const { return bytes_; }

private:
  std::size_t bound_;
  std::size_t bytes_ = 0; ///< waiting and in flight
  std::size_t in_flight_bytes_ = 0;
  bool in_flight_ = false;
  bool closing_ = false;
  base::ring_queue<frame> waiting_;
  std::optional<close_frame> close_;
};

} // namespace parley::net
