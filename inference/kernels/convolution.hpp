#pragma once

#include <cstdint>

// Convolutions with few channels over long signals, as in vocoders, in plain memory: each row is a channel.
namespace parley::inference::cpu {

/// Rows of `length` numbers, `stride` apart.
struct signal {
  float* rows;
  std::int64_t stride;
};

/// to = x + sin(alpha x)^2 * inverse, with alpha and inverse per channel.
void snake(const float* x, std::int64_t stride, const float* alpha, const float* inverse, std::int64_t channels,
           std::int64_t length, signal to);

/// Weights of a convolution, read in place. Sizes are counts of numbers; `dilation` is the distance between two taps.
struct kernel {
  const float* weight; ///< [out, in, size]
  const float* bias;   ///< [out], or null
  std::int64_t out, in, size, dilation;

  std::int64_t reach() const { return (size - 1) * dilation; }
};

/// to[o][t] = bias[o] + sum over c, k of weight[o][c][k] x[c][t + k * dilation] for t in [0, length), so x needs
/// `reach` more numbers. `add`: rows to be added, or null; may be the same as `to`.
void convolve(const float* x, std::int64_t stride, const kernel& by, std::int64_t length, const float* add,
              std::int64_t add_stride, signal to);

} // namespace parley::inference::cpu
