#pragma once

#include "actors/queue/admission_queue.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

namespace parley::actors {

/// Decides which session may retry its work. Work that was in progress when a worker died may have killed it, so each
/// worker retries such work for one session at a time: if that worker dies too, the culprit is known. Plain
/// bookkeeping; not thread-safe.
class trial_queue {
public:
  /// Whether the session with `ticket`, for a slot of `worker`, may retry now. Otherwise `end` will return the ticket
  /// when its turn comes.
  bool ask(worker_key worker, ticket_key ticket) {
    auto& line = lines_[worker];
    if (std::find(line.begin(), line.end(), ticket) == line.end()) line.push_back(ticket);
    return line.front() == ticket;
  }

  /// The trial is over, or no longer wanted. Returns the ticket that may begin now, if any. Ignores unknown tickets.
  std::optional<ticket_key> end(ticket_key ticket) {
    for (auto at = lines_.begin(); at != lines_.end(); ++at) {
      auto& line = at->second;
      const auto found = std::find(line.begin(), line.end(), ticket);
      if (found == line.end()) continue;
      const bool began = found == line.begin();
      line.erase(found);
      if (line.empty()) {
        lines_.erase(at);
        return std::nullopt;
      }
      return began ? std::optional(line.front()) : std::nullopt;
    }
    return std::nullopt;
  }

  /// The worker is gone; drops all trials that ran or waited there.
  void forget(worker_key worker) { lines_.erase(worker); }

private:
  std::map<worker_key, std::deque<ticket_key>> lines_; ///< the first one in each line is being tried
};

} // namespace parley::actors
