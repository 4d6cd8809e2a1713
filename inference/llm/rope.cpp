#include "inference/llm/rope.hpp"

#include "inference/kernels/transfer.hpp"

#include <ATen/ATen.h>

#include <vector>

namespace parley::inference::llm {

rope::rope(int head_dim, double theta, at::Device device)
    : frequencies_(at::pow(theta, at::arange(0, head_dim, 2, at::kFloat) / head_dim).reciprocal()), device_(device) {}

at::Tensor rope::angles(const at::Tensor& positions) const {
  return positions.to(at::kFloat).view({-1, 1, 1}) * frequencies_;
}

namespace {

rope::rotation turn(const at::Tensor& angles) {
  auto cosine = angles.cos().to(at::kFloat);
  auto sine = angles.sin().to(at::kFloat);
  return {at::cat({cosine, cosine}, -1), at::cat({sine.neg(), sine}, -1)};
}

} // namespace

rope::rotation rope::at(const at::Tensor& positions) const {
  return turn(angles(positions));
}

rope::rotation rope::move(std::span<const row_move> moves) const {
  std::vector<at::Tensor> from, to;
  for (const auto& each : moves) {
    const auto steps = at::arange(each.rows, at::kLong);
    from.push_back(steps + each.from);
    to.push_back(steps + each.to);
  }
  const auto [cosine, sine] = turn(angles(at::cat(to)).to(at::kDouble) - angles(at::cat(from)).to(at::kDouble));
  return {upload(cosine, device_), upload(sine, device_)};
}

at::Tensor rope::apply(const at::Tensor& x, const rotation& turn) {
  auto half = x.size(-1) / 2;
  auto swapped = at::cat({x.narrow(-1, half, half), x.narrow(-1, 0, half)}, -1);
  const auto cosine = turn.cosine.to(x.scalar_type()), sine = turn.sine.to(x.scalar_type());
  // On a device, one kernel less.
  return x.is_cpu() ? x * cosine + swapped * sine : (x * cosine).addcmul_(swapped, sine);
}

} // namespace parley::inference::llm
