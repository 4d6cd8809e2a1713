#pragma once

#include <ATen/core/Tensor.h>

namespace parley::inference::llm {

/// x / rms(x) * weight over the last dimension, the mean in float32 whatever the dtype (THINKER.md 4).
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

} // namespace parley::inference::llm
