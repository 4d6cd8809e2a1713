#pragma once

#include "client/listener.hpp"

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

namespace parley::client {

/// The sound that a probe receives, as a person would hear it: kept to be saved, measured as it arrives.
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

  /// The whole session as heard, 24 kHz: every stretch at its place in time, with silence between them and up to `end`.
  std::vector<float> timeline(seconds end) const;

private:
  listener ear_;
  std::vector<float> samples_;
};

/// Writes a 24 kHz WAV file and says so on `out`; without a `path` it does nothing. False when it cannot be written:
/// one line on `err` says so.
bool save_heard(const std::string& path, std::span<const float> samples, std::ostream& out, std::ostream& err);

} // namespace parley::client
