#include "inference/llm/norm.hpp"

#include <ATen/ATen.h>

namespace parley::inference::llm {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  auto wide = x.to(at::kFloat);
  auto scale = wide.square().mean(-1, true).add_(eps).rsqrt_();
  return (wide * scale).to(x.scalar_type()).mul_(weight);
}

} // namespace parley::inference::llm
