#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace parley::inference::init {

/// Near-normal bfloat16 numbers, the same on every machine: the n-th value depends only on the seed, the name and n.
class random_bfloat16 {
public:
  random_bfloat16(std::uint64_t seed, std::string_view name, double mean, double deviation);

  /// Writes the bits of the next numbers to `out`.
  void fill(std::span<std::uint16_t> out);

private:
  std::uint64_t state_;
  float mean_;
  float scale_;
};

} // namespace parley::inference::init
