#pragma once

#include <cmath>
#include <random>
#include <vector>

namespace parley::inference::testing {

/// A seeded mix of tones, noise and silence, as loud as speech.
inline std::vector<float> some_sound(unsigned seed, std::size_t samples) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> frequency(80.0F, 4000.0F);
  std::normal_distribution<float> noise(0.0F, 0.02F);
  std::vector<float> result(samples);
  float hz = frequency(random);
  float level = 0.3F;
  for (std::size_t i = 0; i < samples; ++i) {
    if (i % 4000 == 0) {
      hz = frequency(random);
      level = random() % 4 == 0 ? 0.0F : 0.05F + 0.4F * static_cast<float>(random() % 100) / 100.0F;
    }
    result[i] = level * (std::sin(6.2831853F * hz * static_cast<float>(i) / 16000.0F) + noise(random));
  }
  return result;
}

} // namespace parley::inference::testing
