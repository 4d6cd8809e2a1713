#pragma once

#include "inference/engine/capacity.hpp"

namespace parley::inference {

/// What an engine measured of itself in about a second.
struct pace_sample {
  double seconds = 0;      ///< that it took
  double busy_seconds = 0; ///< of these, spent on the units of its sessions: sound, pictures, words and speech
  int units = 0;           ///< answered
  int late_units = 0;      ///< of these, later than a second after they began
  int sessions = 0;        ///< open
};

/// The number of sessions that a device keeps up with: first from the cost of a unit measured at start, then from what
/// units really cost. People who listen cost less; a device that others use costs more. Pure.
///
/// The estimated cost rises quickly and falls slowly, and the more so the fuller the device is. Hysteresis: the slot
/// count changes only after several consecutive samples agree, and it falls sooner than it rises. Late units reduce it
/// to the sessions that are open.
class slot_estimate {
public:
  /// `most`: the number for which there is memory.
  slot_estimate(const step_cost& cost, int most);

  void add(const pace_sample& sample);

  int slots() const { return slots_; }

  /// The present cost of units relative to their cost at start.
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
