#pragma once

#include "client/listener.hpp"

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

namespace parley::client {

/// The sound that a probe receives, as it is heard: kept to be saved, measured as it comes.
class heard_sound {
public:
  using seconds = listener::seconds;

  /// `lead` as in `listener`.
  explicit heard_sound(seconds lead = seconds(0)) : ear_(lead) {}

  /// `samples` at 24 kHz; `now` as in `listener`.
  void take(seconds now, std::span<const float> samples);
  void end_of_turn() { ear_.end_of_turn(); }
  void silence(seconds now) { ear_.silence(now); }

  const listener& ear() const { return ear_; }

  /// The whole session as a person heard it, 24 kHz: every stretch in its place in time, silence between them and to
  /// `end`.
  std::vector<float> timeline(seconds end) const;

private:
  listener ear_;
  std::vector<float> samples_;
};

/// Writes a 24 kHz WAV file and tells it on `out`; no `path`, nothing to do. False when it can't be written: one line
/// on `err` says so.
bool save_heard(const std::string& path, std::span<const float> samples, std::ostream& out, std::ostream& err);

} // namespace parley::client
