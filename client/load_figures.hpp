#pragma once

#include "client/latencies.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace parley::client {

/// What a load generator measured. Answer times are measured from the moment when the question was *due*, not from when
/// it was sent, so that neither a server that stalls its clients nor a late generator makes them look better.
struct load_figures {
  /// When an answer came and when its unit was due, in seconds of the run.
  struct answer {
    float due;
    float latency;
  };

  std::int64_t asked = 0;     ///< sessions attempted
  std::int64_t held = 0;      ///< how many of these were created
  std::int64_t completed = 0; ///< how many of these finished normally
  std::int64_t units = 0;     ///< number sent: seconds, or questions in chat
  std::int64_t answered = 0;
  std::int64_t spoken = 0;     ///< answered with text or sound
  std::int64_t turns = 0;      ///< turns that the model ended
  std::int64_t dropped = 0;    ///< dropped, as reported by the server
  std::int64_t unanswered = 0; ///< never answered, although the deadline passed
  std::int64_t missed = 0;     ///< answered after the deadline
  std::int64_t interruptions = 0;
  std::int64_t gaps = 0;       ///< gaps heard within turns
  std::int64_t judged = 0;     ///< events that a strict validator looked at; 0 = the dialect has none
  std::int64_t violations = 0; ///< sessions in which one of them broke a rule
  double gap_seconds = 0;
  double sound_seconds = 0;
  std::map<std::string, std::int64_t> errors; ///< number by code
  std::string failure;                        ///< how the first connection failed, for people; empty = none did

  latencies queue_done; ///< since connecting
  latencies created;    ///< since the init
  latencies first_text; ///< of each turn, since its unit was due
  latencies first_sound;
  latencies silenced;          ///< from when a force_listen was due to its listen
  latencies whole_answer;      ///< in chat
  latencies returned;          ///< from when a connection broke until its session was resumed
  latencies lateness;          ///< of the generator itself: how late it sent
  std::vector<answer> answers; ///< in audio and video

  /// Adds another thread's measurements.
  void merge(const load_figures& other);

  /// In audio and video: from when a second was due until its answer was complete.
  latencies unit_latency() const;

  std::int64_t deadline_misses() const { return missed + unanswered; }
};

/// About the run as a whole.
struct load_run {
  double seconds = 0;     ///< duration
  double cpu_seconds = 0; ///< of the generator itself
  int threads = 1;
  int most_at_once = 0; ///< sessions
};

/// An error code as the key of a report: these codes come from a server, so they are cut and cleaned.
std::string error_name(std::string_view code);

/// For humans: one line per figure.
std::string load_table(const load_figures& all, const load_run& run);

/// For programs: JSON, with times in milliseconds.
std::string load_json(const load_figures& all, const load_run& run);

/// An SVG image: latency over time (median and 99th percentile of each second), and its distribution.
std::string load_plot(const load_figures& all, const load_run& run);

} // namespace parley::client
