#pragma once

#include "inference/llm/row_move.hpp"

#include <ATen/core/Tensor.h>

#include <span>

namespace parley::inference::llm {

/// Rotary positions (docs/model/thinker.md 4): NeoX halves; the angle of pair i at position p is p *
/// theta^(-2i/head_dim). Frequencies and angles are rounded to float32 as in the reference: at position 8000 this
/// rounding shows in the results.
class rope {
public:
  rope(int head_dim, double theta, at::Device device);

  struct rotation {
    at::Tensor cosine; ///< [n, 1, head_dim]
    at::Tensor sine;   ///< includes the sign of rotate_half
  };

  /// `positions`: int64 [n]. float32; positions and result are on the CPU.
  rotation at(const at::Tensor& positions) const;

  /// Moves the keys of all these rows, one move after the other: R(new) R(-old) as one rotation. float32, on the device.
  rotation move(std::span<const row_move> moves) const;

  /// Rotates `x` [n, heads, head_dim] in its own dtype, which the rotation is cast to if it has another.
  static at::Tensor apply(const at::Tensor& x, const rotation& turn);

private:
  at::Tensor angles(const at::Tensor& positions) const;

  at::Tensor frequencies_; ///< float32 [head_dim / 2], CPU
  at::Device device_;
};

} // namespace parley::inference::llm
