#include "inference/vocoder/voice_cache.hpp"

#include <functional>
#include <string_view>
#include <utility>

namespace parley::inference::speech {

voice_cache::wanted voice_cache::key_of(std::span<const float> samples) {
  const auto kept = part_of_voice(samples);
  return {std::hash<std::string_view>{}({reinterpret_cast<const char*>(kept.data()), kept.size_bytes()}), kept};
}

std::shared_ptr<const voice> voice_cache::find(std::span<const float> samples) {
  const auto* found = voices_.find(key_of(samples));
  ++(found ? hits_ : misses_);
  return found ? *found : nullptr;
}

void voice_cache::put(std::span<const float> samples, std::shared_ptr<const voice> made) {
  const auto key = key_of(samples);
  voices_.put({key.hash, {key.samples.begin(), key.samples.end()}}, std::move(made));
}

} // namespace parley::inference::speech
