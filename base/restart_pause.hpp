#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

namespace parley::base {

/// How long to wait before a process that has ended is started again: a second at first, twice as long after each
/// further end up to half a minute, and a second again after a long life.
class restart_pause {
public:
  /// `lived`: how long the process that has just ended ran.
  std::chrono::seconds after(std::chrono::steady_clock::duration lived) {
    if (lived >= long_life) next_ = shortest;
    return std::exchange(next_, std::min(next_ * 2, longest));
  }

private:
  static constexpr std::chrono::seconds shortest{1}, longest{30}, long_life{60};
  std::chrono::seconds next_ = shortest;
};

} // namespace parley::base
