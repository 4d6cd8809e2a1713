#pragma once

#include <cstdint>

namespace parley::actors {

/// Random bits for the ids in a session's events, which need be unique but not secret: the same seed gives the same ones
/// again. SplitMix64 (Steele, Lea and Flood 2014).
class id_source {
public:
  explicit id_source(std::uint64_t seed) : state_(seed) {}

  std::uint64_t operator()() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

private:
  std::uint64_t state_;
};

} // namespace parley::actors
