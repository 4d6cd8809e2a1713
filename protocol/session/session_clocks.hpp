#pragma once

#include "protocol/time_point.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace parley::protocol {

/// The clocks of docs/protocol.md section 8. If two are due together, the one listed first expires first.
enum class session_clock : std::uint8_t { go_away, turn, delegation, idle, init_wait, failover, resume, total, drain };

/// The deadlines of a session. Only data: the caller reads the clock.
class session_clocks {
public:
  void set(session_clock which, time_point when) { at(which) = when; }
  void stop(session_clock which) { at(which).reset(); }
  bool runs(session_clock which) const { return when_[static_cast<std::size_t>(which)].has_value(); }
  void stop_all() { when_.fill(std::nullopt); }

  /// The next deadline; nothing if no clock is running.
  std::optional<std::pair<session_clock, time_point>> earliest() const {
    std::optional<std::pair<session_clock, time_point>> first;
    for (std::size_t i = 0; i < when_.size(); ++i) {
      const auto when = when_[i];
      if (when && (!first || *when < first->second)) first.emplace(static_cast<session_clock>(i), *when);
    }
    return first;
  }

private:
  std::optional<time_point>& at(session_clock which) { return when_[static_cast<std::size_t>(which)]; }

  std::array<std::optional<time_point>, 9> when_;
};

} // namespace parley::protocol
