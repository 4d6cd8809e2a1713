#pragma once

#include "actors/meters/metric_makers.hpp"

namespace parley::actors {

/// The metrics of recording. Lives as long as the meters.
struct recording_meter {
  explicit recording_meter(prometheus::Registry& in)
      : kept(plain_gauge(in, "parley_recordings", "Recordings on the disk.")),
        kept_bytes(plain_gauge(in, "parley_recording_bytes", "Bytes of recordings on the disk.")),
        waiting_bytes(plain_gauge(in, "parley_recording_queue_bytes", "Bytes that wait for the recorder.")),
        dropped(plain_counter(in, "parley_recording_dropped_events_total",
                              "Events that are in no recording because too many waited for the disk.")),
        failed(
            plain_counter(in, "parley_recording_failures_total", "Recordings that the disk refused to go on with.")) {}

  prometheus::Gauge& kept;
  prometheus::Gauge& kept_bytes;
  prometheus::Gauge& waiting_bytes;
  prometheus::Counter& dropped;
  prometheus::Counter& failed;
};

} // namespace parley::actors
