#pragma once

#include "client/latencies.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace parley::client {

/// What a load generator measured. Answer times are measured from the moment when the question was *due*, not from when
/// it was sent, so that neither a server that stalls its clients nor a late generator makes them look better.
struct load_figures {
  /// An answer and when its unit was due, in seconds of the run.
  struct answer {
    float due;
    float latency;
  };

  std::int64_t asked = 0;     ///< sessions attempted
  std::int64_t held = 0;      ///< of those, created
  std::int64_t completed = 0; ///< of those, the ones that finished normally
  std::int64_t units = 0;     ///< sent: seconds, and questions in chat
  std::int64_t answered = 0;
  std::int64_t spoken = 0;     ///< of those, with text or sound
  std::int64_t turns = 0;      ///< ended by the model
  std::int64_t dropped = 0;    ///< dropped by the server, as it reports
  std::int64_t unanswered = 0; ///< never answered although the deadline passed
  std::int64_t missed = 0;     ///< answered after the deadline
  std::int64_t interruptions = 0;
  std::int64_t gaps = 0; ///< heard within turns
  double gap_seconds = 0;
  double sound_seconds = 0;
  std::map<std::string, std::int64_t> errors; ///< by code

  latencies queue_done; ///< from connecting
  latencies created;    ///< from the init
  latencies first_text; ///< of each turn, from its unit's due time
  latencies first_sound;
  latencies silenced;          ///< from a due force_listen to its listen
  latencies whole_answer;      ///< in chat
  latencies lateness;          ///< of the generator itself: from due to sent
  std::vector<answer> answers; ///< of audio and video

  /// Adds another thread's measurements.
  void merge(const load_figures& other);

  /// Of audio and video, from a second's due time to its whole answer.
  latencies unit_latency() const;

  std::int64_t deadline_misses() const { return missed + unanswered; }
};

/// About the run as a whole.
struct load_run {
  double seconds = 0;     ///< it took
  double cpu_seconds = 0; ///< of the generator itself
  int threads = 1;
  int most_at_once = 0; ///< sessions
};

/// For people: one line per figure.
std::string load_table(const load_figures& all, const load_run& run);

/// The same for programs; times in milliseconds.
std::string load_json(const load_figures& all, const load_run& run);

/// An SVG image: latency over time (median and 99th percentile of each second) and its distribution.
std::string load_plot(const load_figures& all, const load_run& run);

} // namespace parley::client
