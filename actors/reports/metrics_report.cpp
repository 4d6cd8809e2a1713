#include "actors/reports/metrics_report.hpp"

#include "base/assert.hpp"

namespace parley::actors {

std::string metrics_report(const server_snapshot& now, meters& counted) {
  counted.queue_length().Set(static_cast<double>(now.waits_s.size()));
  counted.slots_wanted().Set(static_cast<double>(now.conversations.size() + now.waiters.size()));
  for (const auto& worker : now.workers) {
    counted.describe(worker.key, worker.node.empty() ? "local" : worker.node, worker.device);
    const auto kept = counted.of_worker(worker.key);
    kept->up->Set(is_up(worker.state) ? 1 : 0);
    kept->slots->Set(0);
    kept->busy_slots->Set(0);
  }
  for (const auto& slots : now.slots) {
    const auto kept = counted.of_worker(slots.worker);
    kept->slots->Set(slots.slots);
    kept->busy_slots->Set(slots.busy);
  }
  for (const auto kind : {protocol::mode::chat, protocol::mode::audio, protocol::mode::video})
    for (std::size_t state = 0; state + 1 < protocol::session_states; ++state)
      counted.sessions(kind, static_cast<protocol::session_state>(state)).Set(0);
  for (const auto& count : now.sessions) counted.sessions(count.kind, count.state).Set(count.sessions);
  counted.violations(base::violation_count());
  return counted.text();
}

} // namespace parley::actors
