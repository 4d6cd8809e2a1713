#pragma once

#include "client/listener.hpp"

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

namespace parley::client {

/// The sound that a probe receives, as a person would hear it: kept for saving, and measured as it arrives.
class playback_timeline {
public:
  using seconds = listener::seconds;

  /// `lead` as in `listener`.
  explicit playback_timeline(seconds lead = seconds(0)) : ear_(lead) {}

  /// `samples` at 24 kHz; `now` as in `listener`.
  void take(seconds now, std::span<const float> samples);
  void end_of_turn() { ear_.end_of_turn(); }
  void silence(seconds now) { ear_.silence(now); }

  const listener& ear() const { return ear_; }

  /// The whole session as heard, 24 kHz, up to `end`: every stretch at its time, with silence between.
  std::vector<float> timeline(seconds end) const;

private:
  listener ear_;
  std::vector<float> samples_;
};

/// Writes a 24 kHz WAV file and reports it on `out`; does nothing without a `path`. If the file cannot be written,
/// prints one line on `err` and returns false.
bool save_heard(const std::string& path, std::span<const float> samples, std::ostream& out, std::ostream& err);

} // namespace parley::client
