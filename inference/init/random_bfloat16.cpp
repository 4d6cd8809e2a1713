#include "inference/init/random_bfloat16.hpp"

#include <bit>
#include <cmath>

namespace parley::inference::init {

namespace {

// SplitMix64 (Steele, Lea, Flood 2014).
constexpr std::uint64_t step = 0x9E3779B97F4A7C15ULL;

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ z >> 27) * 0x94D049BB133111EBULL;
  return z ^ z >> 31;
}

/// FNV-1a.
std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 0xCBF29CE484222325ULL;
  for (unsigned char c : text) h = (h ^ c) * 0x100000001B3ULL;
  return h;
}

/// Rounds to nearest, ties to even; for finite values only.
std::uint16_t to_bfloat16(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

} // namespace

random_bfloat16::random_bfloat16(std::uint64_t seed, std::string_view name, double mean, double deviation)
    : state_(mix(seed + step) ^ hash(name)), mean_(static_cast<float>(mean)) {
  // The deviation of a sum of four uniform 16-bit numbers.
  scale_ = static_cast<float>(deviation / std::sqrt(4.0 * (65536.0 * 65536.0 - 1.0) / 12.0));
}

void random_bfloat16::fill(std::span<std::uint16_t> out) {
  constexpr float centre = 4 * 65535 / 2.0F;
  for (auto& value : out) {
    auto z = mix(state_ += step);
    auto sum = (z & 0xFFFF) + (z >> 16 & 0xFFFF) + (z >> 32 & 0xFFFF) + (z >> 48);
    value = to_bfloat16(mean_ + scale_ * (static_cast<float>(sum) - centre));
  }
}

} // namespace parley::inference::init
