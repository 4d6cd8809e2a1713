#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace parley::base {

/// A budget that comes back with time: it holds at most `most`, begins full, and gets `per_second` back each second.
/// Time is an argument. Not thread-safe.
class token_bucket {
public:
  using time_point = std::chrono::steady_clock::time_point;

  token_bucket(double most, double per_second) : most_(most), per_second_(per_second), left_(most) {}

  double left(time_point now) const {
    if (!counted_at_) return left_;
    const double passed = std::chrono::duration<double>(now - *counted_at_).count();
    return std::min(most_, left_ + std::max(0.0, passed) * per_second_);
  }

  /// Takes all of `amount` or nothing.
  bool take(double amount, time_point now) {
    left_ = left(now);
    counted_at_ = now;
    if (amount > left_) return false;
    left_ -= amount;
    return true;
  }

  /// What was taken and not used.
  void give_back(double amount, time_point now) { left_ = std::min(most_, left(now) + amount), counted_at_ = now; }

  /// When `amount`, which must not exceed what it can hold, will be there: not before `now`.
  time_point when(double amount, time_point now) const {
    const double missing = std::max(0.0, amount - left(now));
    // A moment more, so that rounding does not leave it short then.
    return now + std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(missing / per_second_)) +
           std::chrono::milliseconds(missing > 0 ? 1 : 0);
  }

  bool full(time_point now) const { return left(now) >= most_; }

private:
  double most_, per_second_, left_;
  std::optional<time_point> counted_at_;
};

} // namespace parley::base
