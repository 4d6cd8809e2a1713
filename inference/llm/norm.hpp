#pragma once

#include <ATen/core/Tensor.h>

namespace parley::inference::llm {

/// x / rms(x) * weight over the last dimension, with the mean in float32 whatever the dtype (docs/model/thinker.md 4).
/// `x` [..., n], `weight` [n] of the same dtype, undefined = ones; returns x's shape and dtype.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

} // namespace parley::inference::llm
