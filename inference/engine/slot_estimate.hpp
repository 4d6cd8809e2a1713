#pragma once

#include "inference/engine/capacity.hpp"

namespace parley::inference {

/// What an engine saw of itself in about a second.
struct load_sample {
  double seconds = 0;      ///< that it took
  double busy_seconds = 0; ///< of these, spent on the units of its sessions: sound, pictures, words and speech
  int units = 0;           ///< answered
  int late_units = 0;      ///< of these, later than a second after they began
  int sessions = 0;        ///< open
};

/// How many sessions a device keeps up with, from what a unit cost at start, and from then on from what units really
/// cost: people who listen need less, a device that others use needs more. Pure.
///
/// What sessions need is believed quickly when it is more than before and slowly when it is less, and the more so the
/// fuller the device is. The number follows only when it has been another one for some samples: it comes down before it
/// goes up. Units that are late bring it down to the sessions that are there.
class slot_estimate {
public:
  /// `most`: what the memory holds.
  slot_estimate(const step_cost& cost, int most);

  void add(const load_sample& sample);

  int slots() const { return slots_; }

  /// What units need, by what they needed at start.
  double pace() const { return pace_; }

private:
  int affordable() const;

  step_cost cost_;
  int most_;
  int slots_;
  double pace_ = 1;
  int samples_above_ = 0, samples_below_ = 0, late_samples_ = 0;
};

} // namespace parley::inference
