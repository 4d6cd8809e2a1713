#pragma once

#include "actors/meters/meters.hpp"
#include "conversation/engine.hpp"
#include "protocol/events.hpp"

#include <cstdint>

namespace parley::actors {

/// Counts what is sent to a session's client and what its engine reports. The session owns it; `all` must outlive it.
class session_meter {
public:
  explicit session_meter(meters& all) : all_(all) {}

  /// From now on it has a slot on this worker.
  void runs_on(worker_key key) { worker_ = all_.of_worker(key); }

  /// Counts an event sent to the client.
  void sent(const protocol::server_event& event, protocol::mode kind);

  /// Counts an event of the engine.
  void heard(const conversation::event& event);

  void moved() { all_.failovers().Increment(); }

private:
  void answered(const protocol::output_delta& delta, protocol::mode kind);
  void count(const conversation::usage& used);
  void count(const conversation::step_metrics& cost);

  meters& all_;
  std::shared_ptr<meters::worker> worker_; ///< the last worker
  std::int64_t dropped_ = 0;               ///< dropped units counted so far
};

} // namespace parley::actors
