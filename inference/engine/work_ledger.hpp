#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace parley::inference {

/// What a task is about.
enum class work_kind : std::uint8_t {
  unit,   ///< a second of a running conversation
  window, ///< the end of a unit, and moving rows when its window slides
  prompt, ///< opening a session
  chat,
  replay,
};
inline constexpr std::size_t work_kinds = 5;

/// Why a unit came late: what took most of its time.
enum class late_cause : std::uint8_t {
  itself,
  units,      ///< of others
  background, ///< everything that is no unit
  core,       ///< the engine's thread was ready and did not run
};
inline constexpr std::size_t late_causes = 4;

/// What the engine's thread did with its time.
struct work_ledger {
  using duration = std::chrono::steady_clock::duration;

  std::array<duration, work_kinds> spent{};
  duration waited{0}; ///< for a core
  std::array<std::uint64_t, late_causes> late{};

  duration& of(work_kind kind) { return spent[static_cast<std::size_t>(kind)]; }

  /// A moment of the ledger, for a unit that begins.
  struct mark {
    duration units{0}, background{0}, waited{0};
  };
  mark now() const {
    mark to{spent.front(), duration(0), waited};
    for (auto kind = std::size_t{1}; kind < work_kinds; ++kind) to.background += spent[kind];
    return to;
  }

  /// A unit that began then is late; `own` of the time went into it.
  void count_late(const mark& then, duration own) {
    const auto is = now();
    const std::array shares{own, is.units - then.units - own, is.background - then.background, is.waited - then.waited};
    ++late[static_cast<std::size_t>(std::ranges::max_element(shares) - shares.begin())];
  }
};

} // namespace parley::inference
