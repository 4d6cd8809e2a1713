#pragma once

#include "actors/messages.hpp"

#include <chrono>
#include <optional>
#include <set>

namespace parley::actors {

/// The clock of all actors.
inline std::chrono::steady_clock::time_point steady_now() {
  return std::chrono::steady_clock::now();
}

/// Wakes an actor with `timer_due` at the nearest deadline of its pure part. A deadline that moved further away costs
/// no message: the earlier wake-up finds nothing to do and arms the next one.
class alarm {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// After every event that may have changed the deadline.
  template<class Self>
  void arm(Self* self, std::optional<time_point> deadline) {
    if (!deadline || (!armed_.empty() && *armed_.begin() <= *deadline)) return;
    armed_.insert(*deadline);
    self->scheduled_send(self, *deadline, timer_due{});
  }

  /// On `timer_due`, before `arm`.
  void rang(time_point now) { armed_.erase(armed_.begin(), armed_.upper_bound(now)); }

private:
  std::set<time_point> armed_; ///< wake-ups under way
};

} // namespace parley::actors
