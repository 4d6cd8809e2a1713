#include "inference/kernels/convolution.hpp"

#include "inference/kernels/simd.hpp"

#include <algorithm>

namespace parley::inference::cpu {

namespace {

constexpr std::int64_t wide = 4 * lanes;

/// Computes `outs` channels at `wide` positions, with the sums in registers.
template<int outs>
PARLEY_INLINE void block(const float* x, std::int64_t stride, const kernel& by, std::int64_t channel, const float* add,
                         std::int64_t add_stride, signal to) {
  vector sums[outs][4] = {};
  for (auto o = 0; o < outs; ++o) {
    const auto bias = by.bias ? by.bias[channel + o] : 0.0F;
    for (auto v = 0; v < 4; ++v) {
      sums[o][v] += bias;
      if (add) sums[o][v] += at(add + (channel + o) * add_stride + v * lanes);
    }
  }
  const auto* weight = by.weight + channel * by.in * by.size;
  for (std::int64_t c = 0; c < by.in; ++c)
    for (std::int64_t k = 0; k < by.size; ++k) {
      const auto* from = x + c * stride + k * by.dilation;
      const vector a = at(from), b = at(from + lanes), d = at(from + 2 * lanes), e = at(from + 3 * lanes);
      for (auto o = 0; o < outs; ++o) {
        const auto w = weight[(o * by.in + c) * by.size + k];
        sums[o][0] += w * a, sums[o][1] += w * b, sums[o][2] += w * d, sums[o][3] += w * e;
      }
    }
  for (auto o = 0; o < outs; ++o)
    for (auto v = 0; v < 4; ++v) at(to.rows + (channel + o) * to.stride + v * lanes) = sums[o][v];
}

PARLEY_INLINE void blocks(const float* x, std::int64_t stride, const kernel& by, const float* add,
                          std::int64_t add_stride, signal to) {
  std::int64_t channel = 0;
  for (; channel + 4 <= by.out; channel += 4) block<4>(x, stride, by, channel, add, add_stride, to);
  switch (by.out - channel) {
  case 3: block<3>(x, stride, by, channel, add, add_stride, to); break;
  case 2: block<2>(x, stride, by, channel, add, add_stride, to); break;
  case 1: block<1>(x, stride, by, channel, add, add_stride, to); break;
  default: break;
  }
}

/// Computes the remainder that does not fill a block.
PARLEY_INLINE void rest(const float* x, std::int64_t stride, const kernel& by, std::int64_t length, const float* add,
                        std::int64_t add_stride, signal to) {
  for (std::int64_t o = 0; o < by.out; ++o) {
    float sums[wide];
    for (std::int64_t t = 0; t < length; ++t)
      sums[t] = (by.bias ? by.bias[o] : 0.0F) + (add ? add[o * add_stride + t] : 0.0F);
    for (std::int64_t c = 0; c < by.in; ++c)
      for (std::int64_t k = 0; k < by.size; ++k) {
        const auto w = by.weight[(o * by.in + c) * by.size + k];
        const auto* from = x + c * stride + k * by.dilation;
#pragma omp simd
        for (std::int64_t t = 0; t < length; ++t) sums[t] += w * from[t];
      }
    std::copy(sums, sums + length, to.rows + o * to.stride);
  }
}

} // namespace

PARLEY_FOR_EACH_CPU void snake(const float* x, std::int64_t stride, const float* alpha, const float* inverse,
                               std::int64_t channels, std::int64_t length, signal to) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto* from = x + c * stride;
    auto* into = to.rows + c * to.stride;
    const auto a = alpha[c], i = inverse[c];
#pragma omp simd
    for (std::int64_t t = 0; t < length; ++t) {
      const auto wave = sine(from[t] * a);
      into[t] = from[t] + i * (wave * wave);
    }
  }
}

PARLEY_FOR_EACH_CPU void convolve(const float* x, std::int64_t stride, const kernel& by, std::int64_t length,
                                  const float* add, std::int64_t add_stride, signal to) {
  std::int64_t t = 0;
  for (; t + wide <= length; t += wide)
    blocks(x + t, stride, by, add ? add + t : nullptr, add_stride, {to.rows + t, to.stride});
  if (t < length) rest(x + t, stride, by, length - t, add ? add + t : nullptr, add_stride, {to.rows + t, to.stride});
}

} // namespace parley::inference::cpu
