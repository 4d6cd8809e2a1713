#pragma once

#include "protocol/speech/turn_sound.hpp"
#include "protocol/speech/voice_activity.hpp"
#include "protocol/transcript.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace parley::protocol::speech {

/// Cuts what a user says into turns that can be written down. Pure: time is the sound that it was fed.
class turn_listener {
public:
  /// A turn that is over. Times count the sound from its beginning.
  struct turn {
    compact_sound sound{};
    std::int64_t start_ms = 0, end_ms = 0;
  };

  /// Samples at 16 kHz. Returns the turns that ended in them.
  std::vector<turn> hear(std::span<const float> samples) {
    std::vector<turn> ended;
    while (!samples.empty()) {
      const auto found = finder_.feed(samples, {});
      sound_.hear(samples.first(found.used), found.edge, finder_);
      samples = samples.subspan(found.used);
      if (!found.edge) continue;
      if (found.edge->begins)
        began_ms_ = found.edge->at_ms;
      else
        ended.push_back({sound_.take(), began_ms_, found.edge->at_ms});
    }
    return ended;
  }

  /// Whether the user is in the middle of one.
  bool in_turn() const { return finder_.in_turn(); }

private:
  turn_finder finder_{std::make_unique<loudness_detector>()};
  turn_sound sound_{most_transcribed_samples};
  std::int64_t began_ms_ = 0;
};

} // namespace parley::protocol::speech
