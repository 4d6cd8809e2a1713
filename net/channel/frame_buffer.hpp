#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace parley::net {

/// Collects one WebSocket message in a string. Allocates nothing before bytes arrive. Trusts a frame header for up to
/// `trusted` bytes; beyond that, memory only doubles what has really arrived. Used on one connection's strand.
class frame_buffer {
public:
  static constexpr std::size_t trusted = 192u << 10; ///< holds a second of audio and a picture

  /// Room for the next bytes: never empty, valid until the next call. `expected`: how many bytes of this message are
  /// still to come, as far as known.
  std::span<char> prepare(std::size_t expected);

  /// Call when `n` bytes of the last `prepare` have been filled.
  void commit(std::size_t n);

  std::size_t size() const { return size_; }

  /// Returns the message and empties the buffer.
  std::string take();

  /// Discards all bytes received so far.
  void clear();

private:
  std::array<char, 128> head_; ///< for the first bytes, so that an idle connection needs little
  std::string text_;           ///< its size is the room for bytes; `size_` is how many are used
  std::size_t size_ = 0;
};

} // namespace parley::net
