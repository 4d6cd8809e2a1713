#pragma once

#include "actors/capacity/engine_counters.hpp"
#include "actors/capacity/worker_capacity.hpp"
#include "actors/keys.hpp"
#include "actors/meters/log_meter.hpp"
#include "actors/meters/realtime_meter.hpp"
#include "actors/meters/recording_meter.hpp"
#include "inference/engine.hpp"
#include "protocol/errors.hpp"
#include "protocol/events.hpp"
#include "protocol/session/closing.hpp"
#include "protocol/session/session_machine.hpp"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace parley::actors {

/// What a server counts for GET /metrics. Thread-safe. Counting costs an atomic addition or two; looking up a worker
/// takes a lock, so keep the result.
class meters {
public:
  /// The meters of one worker. They are part of GET /metrics as long as anybody holds them.
  struct worker {
    worker() = default;
    ~worker();
    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;

    std::map<protocol::mode, prometheus::Histogram*> unit_latency;
    prometheus::Histogram* turn_latency; ///< all latencies and times are in seconds
    prometheus::Counter* listened;
    prometheus::Counter* spoke;
    prometheus::Counter* late; ///< units that took longer than a second
    prometheus::Counter* input_text;
    prometheus::Counter* input_audio;
    prometheus::Counter* input_vision;
    prometheus::Counter* output_text;
    prometheus::Counter* output_audio;
    prometheus::Histogram* prefill;
    prometheus::Histogram* generate;
    prometheus::Histogram* llm;
    prometheus::Histogram* tts;
    prometheus::Histogram* token2wav;
    prometheus::Gauge* up;
    prometheus::Gauge* slots;
    prometheus::Gauge* busy_slots;
    prometheus::Gauge* kv_pages_used;
    prometheus::Gauge* kv_pages_free;
    std::array<prometheus::Counter*, std::size(engine_counters)> counted; ///< one for each engine counter
    prometheus::Counter* busy_s;
    prometheus::Gauge* info = nullptr;           ///< null until it is described
    std::vector<std::function<void()>> withdraw; ///< removes each of these from its family
  };

  meters();

  /// Created on first use.
  std::shared_ptr<worker> of_worker(worker_key key);

  /// Names the worker's machine and device, once: unlike its number, they stay the same when it rejoins.
  void describe(worker_key key, const std::string& node, const std::string& device);

  /// A worker has reported its load; `before` is its previous report.
  void loaded(worker_key key, const worker_capacity& before, const worker_capacity& now);

  /// The worker is down and holds nothing.
  void gone(worker_key key);

  /// The worker has left or was replaced: it will not come back under this number.
  void remove(worker_key key);

  prometheus::Counter& errors(protocol::error_code code) { return *errors_[static_cast<std::size_t>(code)]; }
  prometheus::Counter& dropped_units() { return *dropped_units_; }
  prometheus::Counter& failovers() { return *failovers_; }
  prometheus::Counter& resumes(bool welcome) { return *(welcome ? resumed_ : not_resumed_); }
  prometheus::Histogram& queue_wait() { return *queue_wait_; }
  prometheus::Gauge& queue_length() { return *queue_length_; }
  prometheus::Gauge& slots_wanted() { return *slots_wanted_; }
  /// The number of invariants violated in this process so far.
  void violations(std::uint64_t so_far);
  recording_meter& recording() { return recording_; }
  log_meter& logs() { return logs_; }
  realtime_meter& realtime() { return realtime_; }
  prometheus::Gauge& sessions(protocol::mode kind, protocol::session_state state);

  /// A session has ended. `key` is the name of its API key; empty without keys.
  void ended(protocol::mode kind, protocol::session_end how, const std::string& key, const protocol::usage& used);

  /// Everything in Prometheus's text format.
  std::string text() const;

private:
  using counters = prometheus::Family<prometheus::Counter>;
  using gauges = prometheus::Family<prometheus::Gauge>;
  using histograms = prometheus::Family<prometheus::Histogram>;

  prometheus::Registry registry_;
  histograms& unit_latency_;
  histograms& turn_latency_;
  histograms& stages_;
  counters& units_;
  counters& late_;
  counters& tokens_;
  counters& busy_s_;
  counters& ended_;
  counters& key_tokens_;
  gauges& sessions_;
  gauges& up_;
  gauges& info_;
  gauges& slots_;
  gauges& kv_pages_;
  std::array<prometheus::Counter*, protocol::error_table.size()> errors_{};
  prometheus::Counter* dropped_units_;
  prometheus::Counter* failovers_;
  prometheus::Counter* resumed_;
  prometheus::Counter* not_resumed_;
  prometheus::Counter* violations_;
  prometheus::Histogram* queue_wait_;
  prometheus::Gauge* queue_length_;
  prometheus::Gauge* slots_wanted_;
  recording_meter recording_{registry_};
  log_meter logs_{registry_};
  realtime_meter realtime_{registry_};
  std::mutex mutex_;
  std::map<worker_key, std::shared_ptr<worker>> workers_;
};

} // namespace parley::actors
