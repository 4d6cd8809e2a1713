#pragma once

#include <algorithm>
#include <cstddef>

namespace parley::net {

/// How far a connection may read ahead of its session: it stops once `frames` frames or `bytes` bytes have been passed
/// on that the session has not taken yet. A single frame may exceed the bytes. Not thread-safe.
class read_credit {
public:
  read_credit(std::size_t frames, std::size_t bytes) : frames_(frames), bytes_(bytes) {}

  /// Counts a frame of that size passed to the session.
  void spend(std::size_t bytes) {
    ++held_frames_;
    held_bytes_ += bytes;
  }

  /// The session has taken a frame of that size.
  void give_back(std::size_t bytes) {
    held_frames_ -= std::min<std::size_t>(held_frames_, 1);
    held_bytes_ -= std::min(held_bytes_, bytes);
  }

  std::size_t held_bytes() const { return held_bytes_; }

  bool may_read() const { return held_frames_ < frames_ && held_bytes_ < bytes_; }

private:
  std::size_t frames_;
  std::size_t bytes_;
  std::size_t held_frames_ = 0;
  std::size_t held_bytes_ = 0;
};

} // namespace parley::net
