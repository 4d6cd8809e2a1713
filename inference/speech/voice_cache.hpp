#pragma once

#include "inference/speech/voice.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace parley::inference::speech {

/// Prepared voices by what was recorded, the least recently used one dropped first. Of a recording only the part counts
/// that a voice is made of. A voice in use lives on with its users. Not thread-safe.
class voice_cache {
public:
  explicit voice_cache(std::size_t capacity) : capacity_(capacity) {}

  /// The voice of a recording, 16 kHz mono; null = not at hand. Counts a hit or a miss.
  std::shared_ptr<const voice> find(std::span<const float> samples);

  /// Keeps the voice that was made of a recording.
  void put(std::span<const float> samples, std::shared_ptr<const voice> made);

  std::size_t size() const { return recent_.size(); }
  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }

private:
  struct entry {
    std::uint64_t key;
    std::vector<float> samples; ///< two recordings may share a key, but not a voice
    std::shared_ptr<const voice> made;
  };

  std::list<entry>::iterator locate(std::span<const float> kept, std::uint64_t key);

  std::size_t capacity_;
  std::list<entry> recent_; ///< most recent first
  std::unordered_multimap<std::uint64_t, std::list<entry>::iterator> by_key_;
  std::uint64_t hits_ = 0, misses_ = 0;
};

} // namespace parley::inference::speech
