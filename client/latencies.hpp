#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace parley::client {

/// Measured times and what people ask of them.
class latencies {
public:
  using seconds = std::chrono::duration<double>;

  void add(seconds time) { times_.push_back(time); }
  bool empty() const { return times_.empty(); }

  /// The smallest measured time that is not exceeded by the given share of all (nearest rank); zero without measurements.
  seconds quantile(double share) const;

private:
  std::vector<seconds> times_;
};

/// `123.4 ms`.
std::string milliseconds_text(latencies::seconds time);

} // namespace parley::client
