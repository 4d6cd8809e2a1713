#pragma once

#include "actors/meters.hpp"
#include "inference/unit.hpp"
#include "protocol/events.hpp"

#include <cstdint>

namespace parley::actors {

/// Counts what is sent to one session's client and what its engine reports. Owned by the session; `all` outlives it.
class session_meter {
public:
  explicit session_meter(meters& all) : all_(all) {}

  /// It holds a slot there from now on.
  void runs_on(worker_key key) { worker_ = all_.of_worker(key); }

  /// An event goes to the client.
  void sent(const protocol::server_event& event, protocol::mode kind);

  /// An event of the engine, as it came.
  void heard(const inference::event& event);

  void moved() { all_.failovers().Increment(); }

private:
  void answered(const protocol::output_delta& delta, protocol::mode kind);
  void count(const inference::usage& used);
  void count(const inference::step_metrics& cost);

  meters& all_;
  std::shared_ptr<meters::worker> worker_; ///< the last one
  std::int64_t dropped_ = 0;               ///< units counted so far
};

} // namespace parley::actors
