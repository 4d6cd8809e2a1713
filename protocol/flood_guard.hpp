#pragma once

#include "protocol/limits.hpp"
#include "protocol/time_point.hpp"

#include <vector>

namespace parley::protocol {

/// Counts a client's errors in a sliding window (docs/protocol.md 10). Remembers at most `max_flood_errors` + 1 times.
class flood_guard {
public:
  /// Returns true if this error exceeds the limit.
  bool count(time_point now) {
    times_.push_back(now);
    while (now - times_.front() >= flood_span || times_.size() > max_flood_errors + 1) times_.erase(times_.begin());
    return times_.size() > max_flood_errors;
  }

private:
  std::vector<time_point> times_;
};

} // namespace parley::protocol
