#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

namespace parley::actors {

/// The metrics of durable sessions. Lives as long as the meters.
struct journal_meter {
  explicit journal_meter(prometheus::Registry& in)
      : sessions(gauge(in, "parley_journal_sessions", "Live sessions that are kept in journal.dir.")),
        waiting_bytes(gauge(in, "parley_journal_queue_bytes", "Bytes that wait for the disk of journal.dir.")),
        bytes(counter(in, "parley_journal_bytes_total", "Bytes written to journal.dir.")),
        lost(counter(in, "parley_journal_lost_sessions_total",
                     "Live sessions no longer kept in journal.dir, because the disk refused or was too slow.")),
        taken_up(counter(in, "parley_journal_taken_up_total", "Sessions of an earlier process that were taken up.")),
        refused(counter(in, "parley_journal_refused_total",
                        "Sessions of an earlier process whose client came back, but that could not be taken up.")) {}

  prometheus::Gauge& sessions;
  prometheus::Gauge& waiting_bytes;
  prometheus::Counter& bytes;
  prometheus::Counter& lost;
  prometheus::Counter& taken_up;
  prometheus::Counter& refused;

private:
  static prometheus::Gauge& gauge(prometheus::Registry& in, const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(in).Add({});
  }
  static prometheus::Counter& counter(prometheus::Registry& in, const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(in).Add({});
  }
};

} // namespace parley::actors
