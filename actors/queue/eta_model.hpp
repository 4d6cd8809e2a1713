#pragma once

#include "protocol/events.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <queue>
#include <vector>

namespace parley::actors {

/// How long conversations take, by mode: a configured base until three have been measured, then their exponential mean
/// with α = 0.3 (docs/protocol.md 7).
class conversation_lengths {
public:
  conversation_lengths(double chat_s, double audio_s, double video_s) : kinds_{{{chat_s}, {audio_s}, {video_s}}} {}

  void measured(protocol::mode kind, double seconds) {
    auto& it = kinds_[static_cast<std::size_t>(kind)];
    constexpr double alpha = 0.3;
    it.mean_s = it.samples == 0 ? seconds : alpha * seconds + (1 - alpha) * it.mean_s;
    ++it.samples;
  }

  double expected_s(protocol::mode kind) const {
    const auto& it = kinds_[static_cast<std::size_t>(kind)];
    return it.samples < 3 ? it.base_s : it.mean_s;
  }

private:
  struct one_kind {
    double base_s;
    double mean_s = 0;
    int samples = 0;
  };
  std::array<one_kind, 3> kinds_; ///< in the order of protocol::mode
};

/// How much longer a conversation will probably take.
inline double remaining_s(double expected_s, double elapsed_s) {
  constexpr double overdue_s = 15;
  return elapsed_s < expected_s ? expected_s - elapsed_s : overdue_s;
}

/// Assigns each waiter in turn the slot that will be free first.
class slot_forecast {
public:
  /// Adds a busy slot: how long its conversation is expected to take, and how long it has lasted.
  void busy(double expected_s, double elapsed_s) { free_at_.push(remaining_s(expected_s, elapsed_s)); }

  /// Adds a slot that is given up as soon as somebody waits.
  void soon() { free_at_.push(0); }

  /// When the next waiter gets a slot, which it then keeps for `expected_s`. Without any slots, waiters wait for each
  /// other.
  double next(double expected_s) {
    double at = 0;
    if (free_at_.empty()) {
      at = expected_s;
    } else {
      at = free_at_.top();
      free_at_.pop();
    }
    free_at_.push(at + expected_s);
    return at;
  }

private:
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at_;
};

} // namespace parley::actors
