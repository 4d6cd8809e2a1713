#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

namespace parley::actors {

/// The metrics of recording. Lives as long as the meters.
struct recording_meter {
  explicit recording_meter(prometheus::Registry& in)
      : kept(gauge(in, "parley_recordings", "Recordings on the disk.")),
        kept_bytes(gauge(in, "parley_recording_bytes", "Bytes of recordings on the disk.")),
        waiting_bytes(gauge(in, "parley_recording_queue_bytes", "Bytes that wait for the recorder.")),
        dropped(counter(in, "parley_recording_dropped_events_total",
                        "Events that are in no recording because too many waited for the disk.")),
        failed(counter(in, "parley_recording_failures_total", "Recordings that the disk refused to go on with.")) {}

  prometheus::Gauge& kept;
  prometheus::Gauge& kept_bytes;
  prometheus::Gauge& waiting_bytes;
  prometheus::Counter& dropped;
  prometheus::Counter& failed;

private:
  static prometheus::Gauge& gauge(prometheus::Registry& in, const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(in).Add({});
  }
  static prometheus::Counter& counter(prometheus::Registry& in, const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(in).Add({});
  }
};

} // namespace parley::actors
