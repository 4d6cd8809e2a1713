#pragma once

#include "base/token_bucket.hpp"
#include "protocol/realtime/fault.hpp"
#include "protocol/realtime/sound.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

// What clients of OpenAI's dialects may have done for them, judged before it is done. Each connection has an allowance of
// its own, which the pace of a conversation never exhausts; what exceeds it is taken from one that all connections of an
// owner share. What neither has left is refused (sound) or waits (sessions). Time is an argument.
namespace parley::protocol::realtime {

using budget_time = std::chrono::steady_clock::time_point;

/// What the connections of one owner (an API key, or an address) share. Thread-safe.
class owner_budget {
public:
  bool take_sound(double seconds, budget_time now) {
    const std::lock_guard lock(mutex_);
    return sound_s_.take(seconds, now);
  }
  bool take_session(budget_time now) {
    const std::lock_guard lock(mutex_);
    return sessions_.take(1, now);
  }
  budget_time session_due(budget_time now) const {
    const std::lock_guard lock(mutex_);
    return sessions_.when(1, now);
  }

  /// Whether nothing of it is used, so that it may as well be forgotten.
  bool full(budget_time now) const {
    const std::lock_guard lock(mutex_);
    return sound_s_.full(now) && sessions_.full(now);
  }

private:
  mutable std::mutex mutex_;
  base::token_bucket sound_s_{600, 10};
  base::token_bucket sessions_{64, 16};
};

/// What one connection may have. Not thread-safe.
class connection_budget {
public:
  /// `shared`: null = it shares with nobody.
  explicit connection_budget(std::shared_ptr<owner_budget> shared)
      : shared_(shared ? std::move(shared) : std::make_shared<owner_budget>()) {}

  /// Sound that is to be decoded. All or nothing.
  bool take_sound(double seconds, budget_time now) {
    const double own = std::min(seconds, sound_s_.left(now));
    return (own >= seconds || shared_->take_sound(seconds - own, now)) && sound_s_.take(own, now);
  }

  /// Nothing if an inner session may be opened now, which counts it; otherwise when to ask again.
  std::optional<budget_time> open_session(budget_time now) {
    if (sessions_.take(1, now) || shared_->take_session(now)) return std::nullopt;
    return std::min(sessions_.when(1, now), shared_->session_due(now));
  }

  /// An answer that is larger than the event that asks for it: what the server keeps, shown again.
  bool take_echo(std::size_t bytes, budget_time now) { return echo_bytes_.take(static_cast<double>(bytes), now); }

private:
  std::shared_ptr<owner_budget> shared_;
  base::token_bucket sound_s_{10, 1.25}; ///< more than one a second: clocks differ
  base::token_bucket sessions_{8, 1};
  base::token_bucket echo_bytes_{2u << 20, 64u << 10};
};

inline constexpr double most_event_seconds = 300;           ///< of sound in one event: as much as a conversation keeps
inline constexpr std::size_t most_append_bytes = 15u << 20; ///< of base64 in one append, as in OpenAI's API

/// The sound of one event: at most `most_event_seconds`, and what its connection may have.
class event_sound {
public:
  event_sound(connection_budget& budget, budget_time now) : budget_(budget), now_(now) {}

  /// Call before `base64_text` is decoded. Returns why it must not be. `param` names the field.
  std::optional<fault> charge(std::string_view base64_text, const sound_format& format, std::string_view param) {
    const double seconds = seconds_of(base64_text, format);
    seconds_ += seconds;
    if (seconds_ > most_event_seconds) return invalid_value(param, "one event may hold 300 s of sound.").value();
    if (budget_.take_sound(seconds, now_)) return std::nullopt;
    return fault{"rate_limit_exceeded", "Sound comes faster than time, and more than ten minutes ahead of it.",
                 std::string(param), "rate_limit_error"};
  }

private:
  connection_budget& budget_;
  budget_time now_;
  double seconds_ = 0;
};

} // namespace parley::protocol::realtime
