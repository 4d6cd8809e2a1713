#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace parley::net {

/// When to give up writing an answer. The reader may take its time while it makes progress of at least 16 KiB/s on
/// average: we wait neither for a stalled reader nor for one that takes a byte now and then. Pure.
inline std::chrono::steady_clock::time_point transfer_deadline(std::chrono::steady_clock::time_point begun,
                                                               std::chrono::steady_clock::time_point now,
                                                               std::size_t moved_bytes,
                                                               std::chrono::milliseconds patience) {
  constexpr std::size_t slowest_bytes_a_ms = 16;
  const std::chrono::milliseconds earned(moved_bytes / slowest_bytes_a_ms);
  return std::min(now, begun + earned) + patience;
}

} // namespace parley::net
