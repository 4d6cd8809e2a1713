#pragma once

#include "inference/engine/capacity.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

namespace parley::inference {

/// Measures a step's cost again while nobody needs the device: run by run, so that a client who comes waits for one run at
/// most, and more and more seldom. The best of several runs counts, which ignores the load of other programs. Pure.
class idle_measurement {
public:
  /// Whether to measure now. Asked once for each period without work; true for the 1st, 2nd, 4th, 8th, …
  bool due() { return runs_ > 0 || std::has_single_bit(++whiles_); }

  /// Whether there are more runs to come.
  bool begun() const { return runs_ > 0; }

  /// How many sessions the next run simulates.
  int next() const { return runs_ % 2 == 0 ? 1 : 4; }

  /// Records how long the run took, in seconds. Returns the cost once the last run is over.
  std::optional<step_cost> add(double seconds) {
    auto& best = runs_ % 2 == 0 ? one_ : four_;
    best = std::min(best, seconds);
    if (++runs_ < most_runs) return std::nullopt;
    const auto cost = cost_from(one_, four_);
    interrupt();
    return cost;
  }

  /// Work has arrived: the runs so far are discarded.
  void interrupt() {
    one_ = four_ = std::numeric_limits<double>::infinity();
    runs_ = 0;
  }

private:
  static constexpr int most_runs = 6; ///< three of each kind

  unsigned whiles_ = 0;
  int runs_ = 0;
  double one_ = std::numeric_limits<double>::infinity();
  double four_ = std::numeric_limits<double>::infinity();
};

} // namespace parley::inference
