#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace parley::actors {

/// A worker as the choice for one more session sees it. Its slots are what it does in real time.
struct housing {
  std::uint64_t worker = 0;
  int busy = 0; ///< slots, without that session
  int slots = 0;
  bool has_prompt = false; ///< another session there began as this one does
};

/// So much fuller, as a share of its slots, may a worker be for having the prompt: to make one anew costs a moment, to
/// run beside many costs every second.
inline constexpr double prompt_worth = 0.25;

/// Where the session is to go: the worker that it would load least, of what that one can do; one that has its prompt
/// counts for less loaded than it is. None when no slot is free. Pure.
inline std::optional<housing> choose_worker(const std::vector<housing>& all) {
  std::optional<housing> best;
  double least = 0;
  for (const housing& each : all) {
    if (each.busy >= each.slots) continue;
    const double load = static_cast<double>(each.busy + 1) / each.slots - (each.has_prompt ? prompt_worth : 0);
    if (best && (load > least || (load == least && (each.has_prompt || !best->has_prompt)))) continue;
    best = each;
    least = load;
  }
  return best;
}

} // namespace parley::actors
