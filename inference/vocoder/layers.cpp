#include "inference/vocoder/layers.hpp"

#include "inference/kernels/convolution.hpp"

#include <ATen/Parallel.h>

namespace parley::inference::speech {

bool convolves_by_hand(const at::Tensor& x, const padded_conv& conv) {
  constexpr std::int64_t most_weights = 1 << 18;
  return x.is_cpu() && x.scalar_type() == at::kFloat && conv.weight.scalar_type() == at::kFloat && conv.stride == 1 &&
         conv.weight.numel() <= most_weights;
}

at::Tensor convolve_by_hand(const at::Tensor& x, const padded_conv& conv) {
  const cpu::kernel by{conv.weight.const_data_ptr<float>(),
                       conv.bias.defined() ? conv.bias.const_data_ptr<float>() : nullptr,
                       conv.weight.size(0),
                       conv.weight.size(1),
                       conv.kernel(),
                       conv.dilation};
  const auto from = x.stride(2) == 1 ? x : x.contiguous();
  const auto length = x.size(2) - by.reach();
  auto result = at::empty({x.size(0), by.out, length}, x.options());
  auto* to = result.mutable_data_ptr<float>();
  at::parallel_for(0, x.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto n = begin; n < end; ++n)
      cpu::convolve(from.const_data_ptr<float>() + n * from.stride(0), from.stride(1), by, length, nullptr, 0,
                    {to + n * by.out * length, length});
  });
  return result;
}

at::Tensor padded_conv::operator()(const at::Tensor& x) const {
  if (convolves_by_hand(x, *this))
    return convolve_by_hand(left + right > 0 ? at::constant_pad_nd(x, {left, right}) : x, *this);
  const bool even = left == right;
  const std::int64_t padding = even ? left : 0;
  return at::conv1d(even ? x : at::constant_pad_nd(x, {left, right}), weight, bias, at::IntArrayRef(stride),
                    at::IntArrayRef(padding), at::IntArrayRef(dilation));
}

tensor_map fold_weight_norm(const tensor_map& from, const std::string& widened) {
  static const std::string gain = ".parametrizations.weight.original0",
                           direction = ".parametrizations.weight.original1";
  tensor_map result(from.origin());
  for (const auto& [name, tensor] : from) {
    if (name.ends_with(gain)) continue;
    const bool wide = !widened.empty() && name.starts_with(widened);
    const auto value = wide ? tensor.to(at::kDouble) : tensor;
    if (!name.ends_with(direction)) {
      result.put(name, value);
      continue;
    }
    const auto base = name.substr(0, name.size() - direction.size());
    const auto g = from.at(base + gain).to(value.scalar_type());
    result.put(base + ".weight", at::_weight_norm(value, g, 0));
  }
  return result;
}

} // namespace parley::inference::speech
