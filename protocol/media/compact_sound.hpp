#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace parley::protocol {

/// Sound at 16 kHz as 16-bit samples, half the size of the floats that it came as: the nearest ones, so that what was 16-bit sound
/// stays as it was. Other than `actors/bytes/compact_pcm` it is never larger, whatever the sound, since budgets count on that.
using compact_sound = std::shared_ptr<const std::vector<std::int16_t>>;

inline void append_compact(std::span<const float> samples, std::vector<std::int16_t>& out) {
  constexpr float full_scale = 32'768;
  for (const float x : samples) {
    const float number = std::clamp(x, -1.0f, 1.0f) * full_scale;
    out.push_back(static_cast<std::int16_t>(std::min(number + (number < 0 ? -0.5f : 0.5f), full_scale - 1)));
  }
}

inline compact_sound compact(std::span<const float> samples) {
  auto out = std::make_shared<std::vector<std::int16_t>>();
  out->reserve(samples.size());
  append_compact(samples, *out);
  return out;
}

inline std::vector<float> to_floats(const std::vector<std::int16_t>& compact) {
  std::vector<float> samples(compact.size());
  std::transform(compact.begin(), compact.end(), samples.begin(),
                 [](std::int16_t x) { return static_cast<float>(x) / 32'768; });
  return samples;
}

} // namespace parley::protocol
