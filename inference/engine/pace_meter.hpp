#pragma once

#include "inference/engine/slot_estimate.hpp"

#include <chrono>
#include <optional>
#include <utility>

namespace parley::inference {

/// Collects measurements of the engine into samples of about a second. For the engine's thread only.
class pace_meter {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Adds a pass of the engine, of which `share` was spent on units.
  void pass(time_point begin, time_point end, double share) {
    if (!begun_) begun_ = begin;
    sample_.busy_seconds += std::chrono::duration<double>(end - begin).count() * share;
  }

  void unit(bool late) {
    ++sample_.units;
    if (late) ++sample_.late_units;
  }

  /// A complete sample, if there is one. A second with a pause in it is discarded, because it says nothing.
  std::optional<pace_sample> take(time_point now, int sessions) {
    constexpr auto whole = std::chrono::seconds(1), interrupted = std::chrono::seconds(3);
    if (!begun_ || now - *begun_ < whole) return {};
    auto sample = std::exchange(sample_, {});
    const auto lasted = now - *begun_;
    begun_.reset();
    if (lasted > interrupted && sample.late_units == 0) return {};
    sample.seconds = std::chrono::duration<double>(lasted).count();
    sample.sessions = sessions;
    return sample;
  }

private:
  std::optional<time_point> begun_;
  pace_sample sample_;
};

} // namespace parley::inference
