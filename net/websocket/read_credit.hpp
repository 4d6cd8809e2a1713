#pragma once

#include <algorithm>
#include <cstddef>

namespace parley::net {

/// How much a connection may read ahead of its session: it stops while `frames` frames or `bytes` bytes have been
/// passed to the session and not yet taken. One frame may exceed the bytes. Not thread-safe.
class read_credit {
public:
  read_credit(std::size_t frames, std::size_t bytes) : frames_(frames), bytes_(bytes) {}

  /// A frame of that size was passed to the session.
  void spend(std::size_t bytes) {
    ++held_frames_;
    held_bytes_ += bytes;
  }

  /// The session has taken it.
  void give_back(std::size_t bytes) {
    held_frames_ -= std::min<std::size_t>(held_frames_, 1);
    held_bytes_ -= std::min(held_bytes_, bytes);
  }

  bool may_read() const { return held_frames_ < frames_ && held_bytes_ < bytes_; }

private:
  std::size_t frames_;
  std::size_t bytes_;
  std::size_t held_frames_ = 0;
  std::size_t held_bytes_ = 0;
};

} // namespace parley::net
