#include "inference/llm/norm.hpp"

#include <ATen/ATen.h>

#include <optional>

namespace parley::inference::llm {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  if (!x.is_cpu()) {
    // One kernel on CUDA in LibTorch 2.11 and 2.13 (_fused_rms_norm_cuda), for contiguous rows; float32 until the result
    // is rounded.
    std::optional<at::Tensor> factors;
    if (weight.defined()) factors = weight;
    return std::get<0>(at::_fused_rms_norm(x, x.sizes().slice(static_cast<std::size_t>(x.dim()) - 1), factors, eps));
  }
  auto wide = x.to(at::kFloat);
  auto scale = wide.square().mean(-1, true).add_(eps).rsqrt_();
  auto normed = (wide * scale).to(x.scalar_type());
  return weight.defined() ? normed.mul_(weight) : normed;
}

} // namespace parley::inference::llm
