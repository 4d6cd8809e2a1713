#pragma once

#include "actors/meters/meters.hpp"
#include "conversation/engine.hpp"
#include "protocol/events.hpp"

#include <cstddef>
#include <cstdint>

namespace parley::actors {

/// Counts what is sent to a session's client and what its engine reports. The session owns it; `all` must outlive it.
class session_meter {
public:
  explicit session_meter(meters& all) : all_(all) {}

  /// What this session came to so far.
  struct tally {
    worker_key worker = 0;     ///< the last one; 0 = none yet
    std::int64_t answered = 0; ///< units
    std::int64_t late = 0;     ///< of these
    std::int64_t moves = 0;
    std::size_t heard = 0;  ///< samples of the user's sound, at 16 kHz
    std::size_t spoken = 0; ///< samples of speech, at 24 kHz
  };
  const tally& so_far() const { return tally_; }

  /// From now on it has a slot on this worker.
  void runs_on(worker_key key) {
    worker_ = all_.of_worker(key);
    tally_.worker = key;
  }

  /// Counts an event sent to the client.
  void sent(const protocol::server_event& event, protocol::mode kind);

  /// Counts what the engine is to hear.
  void submitted(const conversation::unit_input& unit) { tally_.heard += unit.samples ? unit.samples->size() : 0; }
  void submitted(const conversation::turn_request& turn);

  /// Counts an event of the engine.
  void heard(const conversation::event& event);

  void moved() {
    all_.failovers().Increment();
    ++tally_.moves;
  }

private:
  void answered(const protocol::output_delta& delta, protocol::mode kind);
  void count(const conversation::usage& used);
  void count(const conversation::step_metrics& cost);

  meters& all_;
  std::shared_ptr<meters::worker> worker_; ///< the last worker
  tally tally_;
  std::int64_t dropped_ = 0; ///< dropped units counted so far
};

} // namespace parley::actors
