#include "inference/speech/voice_cache.hpp"

#include <algorithm>
#include <string_view>

namespace parley::inference::speech {
namespace {

std::uint64_t key_of(std::span<const float> kept) {
  return std::hash<std::string_view>{}({reinterpret_cast<const char*>(kept.data()), kept.size_bytes()});
}

} // namespace

std::list<voice_cache::entry>::iterator voice_cache::locate(std::span<const float> kept, std::uint64_t key) {
  const auto [first, last] = by_key_.equal_range(key);
  const auto found = std::find_if(first, last, [&](const auto& item) {
    return std::equal(kept.begin(), kept.end(), item.second->samples.begin(), item.second->samples.end());
  });
  return found == last ? recent_.end() : found->second;
}

std::shared_ptr<const voice> voice_cache::find(std::span<const float> samples) {
  const auto kept = part_of_voice(samples);
  const auto found = locate(kept, key_of(kept));
  if (found == recent_.end()) {
    ++misses_;
    return nullptr;
  }
  ++hits_;
  recent_.splice(recent_.begin(), recent_, found);
  return found->made;
}

void voice_cache::put(std::span<const float> samples, std::shared_ptr<const voice> made) {
  const auto kept = part_of_voice(samples);
  const auto key = key_of(kept);
  if (capacity_ == 0 || locate(kept, key) != recent_.end()) return;
  if (recent_.size() == capacity_) {
    const auto oldest = std::prev(recent_.end());
    const auto [from, to] = by_key_.equal_range(oldest->key);
    by_key_.erase(std::find_if(from, to, [&](const auto& item) { return item.second == oldest; }));
    recent_.pop_back();
  }
  recent_.push_front({key, {kept.begin(), kept.end()}, std::move(made)});
  try {
    by_key_.emplace(key, recent_.begin());
  } catch (...) {
    recent_.pop_front();
    throw;
  }
}

} // namespace parley::inference::speech
