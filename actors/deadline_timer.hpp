#pragma once

#include "actors/deadline_clock.hpp"
#include "actors/messages.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <set>

namespace parley::actors {

/// The clock of all actors.
inline std::chrono::steady_clock::time_point steady_now() {
  return std::chrono::steady_clock::now();
}

/// Wakes an actor with `timer_due` at the nearest deadline of its pure part. Postponing a deadline costs no message:
/// the earlier wake-up finds nothing to do and sets the next one.
class deadline_timer {
public:
  using time_point = std::chrono::steady_clock::time_point;

  deadline_timer() = default;
  ~deadline_timer() {
    if (target_) target_->let_go();
  }
  deadline_timer(const deadline_timer&) = delete;
  deadline_timer& operator=(const deadline_timer&) = delete;

  /// Call after every event that may have changed the deadline.
  template<class Self>
  void arm(Self* self, std::optional<time_point> deadline) {
    if (deadline && arm(*deadline)) self->scheduled_send(self, *deadline, timer_due{});
  }

  /// The same, on a clock that many actors share.
  template<class Self>
  void arm(Self* self, std::optional<time_point> deadline, deadline_clock& by) {
    if (!deadline || !arm(*deadline)) return;
    if (!target_) target_ = std::make_shared<wake_target>(self->ctrl());
    by.wake(target_, *deadline);
  }

  /// Call on `timer_due`, before `arm`.
  void fired(time_point now) { armed_.erase(armed_.begin(), armed_.upper_bound(now)); }

private:
  /// Whether a wake-up for it is needed, which then counts as pending.
  bool arm(time_point deadline) {
    if (!armed_.empty() && *armed_.begin() <= deadline) return false;
    armed_.insert(deadline);
    return true;
  }

  std::set<time_point> armed_; ///< pending wake-ups
  std::shared_ptr<wake_target> target_;
};

} // namespace parley::actors
