#pragma once

#include "base/lru_cache.hpp"
#include "inference/vocoder/voice.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// Prepared voices by recording; the least recently used one is evicted first. Only the part of a recording that is
/// used counts. A voice in use lives on with its users. Not thread-safe.
class voice_cache {
public:
  explicit voice_cache(std::size_t capacity) : voices_(capacity) {}

  /// The voice of a recording, 16 kHz mono; null = not cached. Counts a hit or a miss.
  std::shared_ptr<const voice> find(std::span<const float> samples);

  /// Caches the voice that was prepared from a recording.
  void put(std::span<const float> samples, std::shared_ptr<const voice> made);

  std::size_t size() const { return voices_.size(); }
  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }

private:
  struct wanted {
    std::uint64_t hash;
    std::span<const float> samples;
  };
  struct recording {
    std::uint64_t hash;
    std::vector<float> samples; ///< compared as well, because two recordings may have the same hash

    bool operator==(const recording& other) const = default;
    bool operator==(const wanted& other) const {
      return hash == other.hash && std::ranges::equal(samples, other.samples);
    }
  };

  static wanted key_of(std::span<const float> samples);

  base::lru_cache<recording, std::shared_ptr<const voice>> voices_;
  std::uint64_t hits_ = 0, misses_ = 0;
};

} // namespace parley::inference::speech
