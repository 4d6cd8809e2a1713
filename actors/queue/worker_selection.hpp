#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace parley::actors {

/// A worker as a candidate for one more session. Its slots are the number of sessions that it can serve in real time.
struct worker_candidate {
  std::uint64_t worker = 0;
  int busy = 0; ///< slots in use, without that session
  int slots = 0;
  bool has_prompt = false; ///< another session there began with the same prompt
};

/// A worker that has the prompt cached wins unless it is fuller by more than this share of its slots: prefilling the
/// prompt again costs a moment, but sharing a device with many costs every second.
inline constexpr double prompt_worth = 0.25;

/// Chooses the worker that would be loaded least relative to its slots; one that has the prompt cached counts as less
/// loaded. None if no slot is free. Pure.
inline std::optional<worker_candidate> choose_worker(const std::vector<worker_candidate>& all) {
  std::optional<worker_candidate> best;
  double least = 0;
  for (const worker_candidate& each : all) {
    if (each.busy >= each.slots) continue;
    const double load = static_cast<double>(each.busy + 1) / each.slots - (each.has_prompt ? prompt_worth : 0);
    if (best && (load > least || (load == least && (each.has_prompt || !best->has_prompt)))) continue;
    best = each;
    least = load;
  }
  return best;
}

} // namespace parley::actors
