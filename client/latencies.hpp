#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace parley::client {

/// Measured times and the usual statistics.
class latencies {
public:
  using seconds = std::chrono::duration<double>;

  void add(seconds time) { times_.push_back(time); }
  void add(const latencies& other) { times_.insert(times_.end(), other.times_.begin(), other.times_.end()); }
  std::size_t count() const { return times_.size(); }
  bool empty() const { return times_.empty(); }

  /// The smallest measured time that at least this share of all times do not exceed (nearest rank); zero without
  /// measurements.
  seconds quantile(double share) const;

private:
  std::vector<seconds> times_;
};

/// For example `123.4 ms`.
std::string milliseconds_text(latencies::seconds time);

/// For example `1.23 s`.
std::string seconds_text(latencies::seconds time);

/// `0.123`.
std::string factor_text(double factor);

} // namespace parley::client
