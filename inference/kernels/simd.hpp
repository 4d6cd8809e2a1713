#pragma once

#include "base/each_cpu.hpp"

#include <bit>
#include <cstdint>

// Shared by the hand-written loops: plain C++ that the compiler vectorises (base/each_cpu.hpp).
namespace parley::inference::cpu {

/// The upper half of a float32.
struct bfloat16 {
  std::uint16_t bits;
};

/// Exact.
PARLEY_INLINE float widen(float x) {
  return x;
}

PARLEY_INLINE float widen(bfloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

PARLEY_INLINE void narrow(float x, float& into) {
  into = x;
}

/// Rounds to nearest, ties to even. NaN may become infinite.
PARLEY_INLINE void narrow(float x, bfloat16& into) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  into.bits = static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

/// e^x within 2 units in the last place; 0 below -87.
PARLEY_INLINE float exp(float x) {
  constexpr float to_integer = 12582912.0F; // 1.5 * 2^23: adding it puts the integer into the last bits
  const auto clamped = x > 88.0F ? 88.0F : x < -87.0F ? -87.0F : x;
  const auto shifted = clamped * 1.44269504088896341F + to_integer;
  const auto n = shifted - to_integer;
  const auto r = (clamped - n * 0.693359375F) - n * -2.12194440e-4F;
  auto p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const auto power = (std::bit_cast<std::int32_t>(shifted) - 0x4B400000 + 127) << 23;
  return x < -87.0F ? 0.0F : p * std::bit_cast<float>(power);
}

/// Sine and cosine of an angle within [-pi/2, pi/2], accurate to 3e-7.
PARLEY_INLINE float small_sine(float x) {
  const auto s = x * x;
  auto p = -2.3889859e-8F;
  p = p * s + 2.7525562e-6F;
  p = p * s - 1.9840874e-4F;
  p = p * s + 8.3333310e-3F;
  p = p * s - 1.6666667e-1F;
  return p * s * x + x;
}

PARLEY_INLINE float small_cosine(float x) {
  const auto s = x * x;
  auto p = -2.6051615e-7F;
  p = p * s + 2.4760495e-5F;
  p = p * s - 1.3888378e-3F;
  p = p * s + 4.1666638e-2F;
  p = p * s - 0.5F;
  return p * s + 1.0F;
}

/// Sine of any angle up to some thousands, reduced by a multiple of pi; odd multiples flip the sign.
PARLEY_INLINE float sine(float x) {
  constexpr float to_integer = 12582912.0F;
  const auto shifted = x * 0.318309886183790672F + to_integer;
  const auto n = shifted - to_integer;
  const auto r = ((x - n * 3.140625F) - n * 9.67502593994140625e-4F) - n * 1.509957990978376432e-7F;
  const auto odd = std::bit_cast<std::uint32_t>(shifted) << 31;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(small_sine(r)) ^ odd);
}

/// As wide as the widest registers; on narrower processors it takes several.
constexpr std::int64_t lanes = 16;
using vector = float __attribute__((vector_size(lanes * sizeof(float))));
using loose_vector = float __attribute__((vector_size(lanes * sizeof(float)), aligned(alignof(float)), may_alias));

/// Accesses `lanes` floats at any address, aligned or not.
PARLEY_INLINE const loose_vector& at(const float* place) {
  return *reinterpret_cast<const loose_vector*>(place);
}

PARLEY_INLINE loose_vector& at(float* place) {
  return *reinterpret_cast<loose_vector*>(place);
}

} // namespace parley::inference::cpu
