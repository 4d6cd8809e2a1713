#include "inference/engine/slot_estimate.hpp"

#include <algorithm>

namespace parley::inference {

namespace {

// Weights of one sample, which covers about a second.
constexpr double weight_of_more = 0.3, weight_of_less = 0.03;
constexpr double least_weight = 0.1; ///< of a sample from an almost empty device, which says little about a full one
constexpr int patience_up = 10, patience_down = 3, patience_late = 2;
constexpr int dead_band = 10; ///< changes of less than slots / dead_band are ignored

} // namespace

slot_estimate::slot_estimate(const step_cost& cost, int most)
    : cost_(cost), most_(std::max(most, 1)), slots_(slots_in_time(cost, most_)) {}

int slot_estimate::affordable() const {
  return slots_in_time({cost_.fixed_seconds * pace_, cost_.session_seconds * pace_}, most_);
}

void slot_estimate::add(const pace_sample& sample) {
  if (sample.units < 1 || sample.seconds <= 0) return;
  const auto sessions = sample.units / sample.seconds; // sessions, had they all talked all the time
  const auto foreseen = cost_.fixed_seconds + cost_.session_seconds * sessions;
  const auto needed = sample.busy_seconds / sample.seconds / std::max(foreseen, 1e-9);
  const auto fullness = std::clamp(sessions / slots_, least_weight, 1.0);
  pace_ += (needed - pace_) * (needed > pace_ ? weight_of_more : weight_of_less) * fullness;

  late_samples_ = sample.late_units > 0 ? late_samples_ + 1 : 0;
  const auto wanted = affordable(), band = slots_ / dead_band;
  samples_above_ = wanted > slots_ + band && late_samples_ == 0 ? samples_above_ + 1 : 0;
  samples_below_ = wanted < slots_ - band ? samples_below_ + 1 : 0;
  if (late_samples_ >= patience_late) {
    slots_ = std::clamp(sample.sessions, 1, slots_);
  } else if (samples_below_ >= patience_down) {
    slots_ = wanted;
    samples_below_ = 0;
  } else if (samples_above_ >= patience_up) {
    slots_ += (wanted - slots_ + 1) / 2;
    samples_above_ = 0;
  }
}

bool slot_estimate::measured(const step_cost& cost) {
  const auto wanted = slots_in_time(cost, most_);
  if (wanted <= slots_) return false;
  cost_ = cost;
  pace_ = 1;
  slots_ = wanted;
  samples_above_ = samples_below_ = late_samples_ = 0;
  return true;
}

} // namespace parley::inference
