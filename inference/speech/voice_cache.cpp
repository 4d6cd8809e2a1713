#include "inference/speech/voice_cache.hpp"

#include <algorithm>
#include <string_view>

namespace parley::inference::speech {

std::shared_ptr<const voice> voice_cache::get(std::span<const float> samples, const prepare& make) {
  const auto kept = samples.first(std::min(samples.size(), static_cast<std::size_t>(longest_voice_samples)));
  const std::uint64_t key =
      std::hash<std::string_view>{}({reinterpret_cast<const char*>(kept.data()), kept.size_bytes()});
  const auto [first, last] = by_key_.equal_range(key);
  for (auto it = first; it != last; ++it)
    if (std::equal(kept.begin(), kept.end(), it->second->samples->begin(), it->second->samples->end())) {
      recent_.splice(recent_.begin(), recent_, it->second);
      ++hits_;
      return it->second->made;
    }
  ++misses_;
  auto made = make(kept);
  if (capacity_ == 0) return made;
  if (recent_.size() == capacity_) {
    const auto oldest = std::prev(recent_.end());
    const auto [from, to] = by_key_.equal_range(oldest->key);
    by_key_.erase(std::find_if(from, to, [&](const auto& item) { return item.second == oldest; }));
    recent_.pop_back();
  }
  recent_.push_front({key, std::make_shared<const std::vector<float>>(kept.begin(), kept.end()), made});
  by_key_.emplace(key, recent_.begin());
  return made;
}

} // namespace parley::inference::speech
