#pragma once

#include "inference/speech/voice.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>

namespace parley::inference::speech {

/// Prepared voices, the least recently used one dropped first. A voice in use lives on with its users. Not thread-safe.
class voice_cache {
public:
  using prepare = std::function<std::shared_ptr<const voice>(std::span<const float> samples)>;

  explicit voice_cache(std::size_t capacity) : capacity_(capacity) {}

  /// 16 kHz mono samples; `make` is called when no voice with exactly these samples is at hand, and may throw.
  std::shared_ptr<const voice> get(std::span<const float> samples, const prepare& make);

  std::size_t size() const { return recent_.size(); }
  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }

private:
  struct entry {
    std::uint64_t key;
    std::shared_ptr<const std::vector<float>> samples; ///< two recordings may share a key, but not a voice
    std::shared_ptr<const voice> made;
  };

  std::size_t capacity_;
  std::list<entry> recent_; ///< most recent first
  std::unordered_multimap<std::uint64_t, std::list<entry>::iterator> by_key_;
  std::uint64_t hits_ = 0, misses_ = 0;
};

} // namespace parley::inference::speech
