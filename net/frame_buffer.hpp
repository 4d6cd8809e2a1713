#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace parley::net {

/// Gathers one WebSocket message into a string. Nothing is allocated before bytes are there; up to `trusted` bytes are
/// allocated on the word of a frame header, beyond that the memory only doubles what has really come. Of one
/// connection's strand.
class frame_buffer {
public:
  static constexpr std::size_t trusted = 192u << 10; ///< a second of audio and a picture fit

  /// Where the next bytes go, never empty, valid until the next call. `expected` are still to come for this message, as
  /// far as known.
  std::span<char> prepare(std::size_t expected);

  /// `n` bytes of the last `prepare` were filled.
  void commit(std::size_t n);

  std::size_t size() const { return size_; }

  /// The message. The buffer is empty again.
  std::string take();

  /// Forgets what has come.
  void clear();

private:
  std::array<char, 1536> head_; ///< the first bytes, so that an idle connection holds no heap
  std::string text_;            ///< its size is what may be written to, `size_` is what was
  std::size_t size_ = 0;
};

} // namespace parley::net
