#include "inference/llm/rope.hpp"

#include <ATen/ATen.h>

#include <cmath>

namespace parley::inference::llm {

rope::rope(int head_dim, double theta, at::Device device)
    : frequencies_(at::empty({head_dim / 2}, at::kDouble)), device_(device) {
  auto* f = frequencies_.mutable_data_ptr<double>();
  // The reference rounds the frequencies to float32 before it multiplies.
  for (auto i = 0; i < head_dim / 2; ++i) f[i] = static_cast<float>(1.0 / std::pow(theta, 2.0 * i / head_dim));
}

rope::rotation rope::at(const at::Tensor& positions) const {
  auto angle = positions.to(at::kCPU, at::kDouble).view({-1, 1, 1}) * frequencies_;
  auto cosine = angle.cos().to(at::kFloat);
  auto sine = angle.sin().to(at::kFloat);
  return {at::cat({cosine, cosine}, -1).to(device_), at::cat({sine.neg(), sine}, -1).to(device_)};
}

rope::rotation rope::by(std::int64_t delta) const {
  return at(at::full({1}, delta, at::kLong));
}

at::Tensor rope::apply(const at::Tensor& x, const rotation& turn) {
  auto half = x.size(-1) / 2;
  auto swapped = at::cat({x.narrow(-1, half, half), x.narrow(-1, 0, half)}, -1);
  return x * turn.cosine.to(x.scalar_type()) + swapped * turn.sine.to(x.scalar_type());
}

} // namespace parley::inference::llm
