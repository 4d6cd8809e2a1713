#pragma once

namespace parley::inference {

/// A lower temperature leaves nothing to chance: scaled that far apart, logits would only overflow. Like 0, it means
/// the most likely token, for text and for speech.
inline constexpr double least_temperature = 1e-4;

/// Also true for NaN.
constexpr bool takes_the_likeliest(double temperature) {
  return !(temperature >= least_temperature);
}

} // namespace parley::inference
