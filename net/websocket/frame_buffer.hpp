#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace parley::net {

/// Collects one WebSocket message in a string. Nothing is allocated before bytes arrive. A frame header is trusted for
/// up to `trusted` bytes; beyond that, memory only doubles what has really arrived. Used on one connection's strand.
class frame_buffer {
public:
  static constexpr std::size_t trusted = 192u << 10; ///< a second of audio and a picture fit

  /// Where the next bytes go: never empty, valid until the next call. `expected` bytes are still to come for this
  /// message, as far as known.
  std::span<char> prepare(std::size_t expected);

  /// `n` bytes of the last `prepare` have been filled.
  void commit(std::size_t n);

  std::size_t size() const { return size_; }

  /// The message. The buffer is empty afterwards.
  std::string take();

  /// Discards what has arrived.
  void clear();

private:
  std::array<char, 1536> head_; ///< for the first bytes, so that an idle connection uses no heap
  std::string text_;            ///< its size is what may be written to, `size_` what has been written
  std::size_t size_ = 0;
};

} // namespace parley::net
