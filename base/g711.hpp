#pragma once

#include <cstdint>

// ITU-T G.711, decoded on the 16-bit scale.
namespace parley::base {

inline constexpr int mu_law_bias = 132;

constexpr int decode_mu_law(std::uint8_t code) {
  const int c = code ^ 0xFF;
  const int magnitude = ((((c & 15) << 3) + mu_law_bias) << ((c & 0x70) >> 4)) - mu_law_bias;
  return (c & 0x80) != 0 ? -magnitude : magnitude;
}

constexpr int decode_a_law(std::uint8_t code) {
  const int c = code ^ 0x55;
  const int exponent = (c & 0x70) >> 4;
  const int mantissa = (c & 15) << 4;
  const int magnitude = exponent == 0 ? mantissa + 8 : (mantissa + 0x108) << (exponent - 1);
  return (c & 0x80) != 0 ? magnitude : -magnitude;
}

} // namespace parley::base
