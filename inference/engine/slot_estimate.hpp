#pragma once

#include "inference/engine/capacity.hpp"

namespace parley::inference {

/// What an engine measured about itself in about one second.
struct pace_sample {
  double seconds = 0;      ///< length of the sample
  double busy_seconds = 0; ///< how much of it was spent on units: sound, pictures, words and speech
  int units = 0;           ///< answered units
  int late_units = 0;      ///< how many of them took more than a second
  int sessions = 0;        ///< open sessions
};

/// The number of sessions that a device can keep up with: first from the cost of a unit measured at start, later from
/// what units really cost. Listening sessions cost less; other programs on the device raise the cost. Pure.
///
/// The estimated cost rises quickly and falls slowly, and it follows samples from a full device most. Hysteresis: the
/// slot count changes only after several consecutive samples agree, and it falls sooner than it rises. Late units
/// reduce it to the number of open sessions.
class slot_estimate {
public:
  /// `most`: the number of slots that memory allows.
  slot_estimate(const step_cost& cost, int most);

  void add(const pace_sample& sample);

  /// The cost was measured again, on an idle device. If more sessions can be had for it, they are offered: what was
  /// measured before was the load of other programs, too. Returns whether the number has changed.
  bool measured(const step_cost& cost);

  int slots() const { return slots_; }

  /// The present cost of a unit relative to its cost at start.
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
