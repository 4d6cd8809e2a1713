#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace parley::inference::llm {

/// Rotary positions (THINKER.md 4): NeoX halves, angle of pair i at position p is p * theta^(-2i/head_dim).
/// Angles are computed in double and kept as float32.
class rope {
public:
  rope(int head_dim, double theta, at::Device device);

  struct rotation {
    at::Tensor cosine; ///< float32 [n, 1, head_dim]
    at::Tensor sine;   ///< with the sign of rotate_half folded in
  };

  /// `positions`: int64 [n] on any device.
  rotation at(const at::Tensor& positions) const;

  /// The same rotation for every row: moves keys by `delta` positions, since R(new) R(-old) = R(new - old).
  rotation by(std::int64_t delta) const;

  /// `x`: [n, heads, head_dim].
  static at::Tensor apply(const at::Tensor& x, const rotation& turn);

private:
  at::Tensor frequencies_; ///< float64 [head_dim / 2], CPU
  at::Device device_;
};

} // namespace parley::inference::llm
