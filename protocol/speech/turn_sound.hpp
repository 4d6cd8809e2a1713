#pragma once

#include "protocol/media/compact_sound.hpp"
#include "protocol/speech/voice_activity.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace parley::protocol::speech {

/// Keeps the sound of the turn that a `turn_finder` is following, with a little of what came before it.
class turn_sound {
public:
  /// `most_samples`: of a turn's sound, how much is kept; a longer turn keeps this much and one sample more.
  explicit turn_sound(std::size_t most_samples) : most_(most_samples + 1) {}

  /// What the finder has just used up, with the edge that it found at the end of that.
  void hear(std::span<const float> samples, const std::optional<turn_edge>& edge, const turn_finder& finder);

  /// The turn's sound; it is over.
  compact_sound take() { return compact(std::exchange(kept_, {})); }

private:
  std::size_t most_;
  std::vector<float> kept_;
};

} // namespace parley::protocol::speech
