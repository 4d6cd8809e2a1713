#pragma once

#include "protocol/limits.hpp"

#include <chrono>
#include <deque>

namespace parley::protocol {

/// Counts a client's errors in a sliding window (docs/protocol.md 10). Stores at most `max_flood_errors` + 1 times.
class flood_guard {
public:
  /// Returns true when this error exceeds the limit.
  bool count(std::chrono::steady_clock::time_point now) {
    times_.push_back(now);
    while (now - times_.front() >= flood_span || times_.size() > max_flood_errors + 1) times_.pop_front();
    return times_.size() > max_flood_errors;
  }

private:
  std::deque<std::chrono::steady_clock::time_point> times_;
};

} // namespace parley::protocol
