#pragma once

namespace parley::inference {

/// Below this a temperature leaves nothing to chance: logits that far apart would only overflow. As 0, it means the
/// likeliest token, for text and for speech.
inline constexpr double least_temperature = 1e-4;

/// Also of what is no number.
constexpr bool takes_the_likeliest(double temperature) {
  return !(temperature >= least_temperature);
}

} // namespace parley::inference
