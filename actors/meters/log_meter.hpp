#pragma once

#include "actors/meters/metric_makers.hpp"

namespace parley::actors {

/// The metrics of durable sessions. Lives as long as the meters.
struct log_meter {
  explicit log_meter(prometheus::Registry& in)
      : sessions(plain_gauge(in, "parley_journal_sessions", "Live sessions that are kept in journal.dir.")),
        waiting_bytes(plain_gauge(in, "parley_journal_queue_bytes", "Bytes that wait for the disk of journal.dir.")),
        bytes(plain_counter(in, "parley_journal_bytes_total", "Bytes written to journal.dir.")),
        lost(plain_counter(in, "parley_journal_lost_sessions_total",
                           "Live sessions no longer kept in journal.dir, because the disk refused or was too slow.")),
        taken_up(
            plain_counter(in, "parley_journal_taken_up_total", "Sessions of an earlier process that were taken up.")),
        refused(
            plain_counter(in, "parley_journal_refused_total",
                          "Sessions of an earlier process whose client came back, but that could not be taken up.")),
        copied(plain_gauge(in, "parley_journal_copied_sessions",
                           "Live sessions whose log has been sent to another gateway as far as it goes.")),
        behind_bytes(plain_gauge(in, "parley_journal_copy_behind_bytes",
                                 "Bytes of logs that have not yet arrived at another gateway.")),
        not_copied(plain_counter(in, "parley_journal_not_copied_total",
                                 "Live sessions of which another gateway cannot keep a copy.")) {}

  prometheus::Gauge& sessions;
  prometheus::Gauge& waiting_bytes;
  prometheus::Counter& bytes;
  prometheus::Counter& lost;
  prometheus::Counter& taken_up;
  prometheus::Counter& refused;
  prometheus::Gauge& copied;
  prometheus::Gauge& behind_bytes;
  prometheus::Counter& not_copied;
};

} // namespace parley::actors
