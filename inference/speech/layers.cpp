#include "inference/speech/layers.hpp"

#include "inference/kernels/convolution.hpp"
#include "inference/kernels/parallel.hpp"
#include "inference/kernels/processor.hpp"

#include <stdexcept>
#include <vector>

namespace parley::inference::speech {

namespace {

/// Whether a product rounds its input: the weights are in bfloat16, and it is not.
bool rounds(const at::Tensor& x, const at::Tensor& weight) {
  return weight.scalar_type() == at::kBFloat16 && x.scalar_type() != at::kBFloat16;
}

void narrow(at::Tensor& weight) {
  if (weight.is_cpu() && cpu::multiplies_bfloat16()) weight = weight.to(at::kBFloat16);
}

void convert_both(at::Tensor& weight, at::Tensor& bias, at::ScalarType dtype) {
  weight = weight.to(dtype);
  if (bias.defined()) bias = bias.to(dtype);
}

/// at::linear, by the weights' dtype: the sums of bfloat16 products are rounded once, to bfloat16.
at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (!rounds(x, weight)) return at::linear(x, weight, bias);
  auto y = at::linear(x.to(at::kBFloat16), weight).to(x.scalar_type());
  return bias.defined() ? y.add_(bias) : y;
}

} // namespace

at::Tensor linear::operator()(const at::Tensor& x) const {
  if (!quantized) return product(x, weight, bias);
  auto sizes = x.sizes().vec();
  auto y = quantized->product(x.flatten(0, -2));
  sizes.back() = y.size(1);
  y = y.view(sizes);
  return bias.defined() ? y.add_(bias) : y;
}

void linear::convert(at::ScalarType dtype) {
  convert_both(weight, bias, dtype);
}

void layer_norm::convert(at::ScalarType dtype) {
  convert_both(weight, bias, dtype);
}

void window_conv::convert(at::ScalarType dtype) {
  convert_both(weight, bias, dtype);
}

void linear::use_bfloat16() {
  narrow(weight);
}

void linear::use_int8() {
  quantized = std::make_shared<llm::quantized_matrix>(weight, llm::quantization::int8);
  weight.reset();
}

at::Tensor window_conv::operator()(const at::Tensor& rows, const at::Tensor& windows) const {
  return product(rows.index_select(0, windows).view({-1, weight.size(1)}), weight, bias);
}

void window_conv::use_bfloat16() {
  narrow(weight);
}

bool convolves_by_hand(const at::Tensor& x, const padded_conv& conv) {
  constexpr std::int64_t most_weights = 1 << 18;
  return x.is_cpu() && x.scalar_type() == at::kFloat && conv.weight.scalar_type() == at::kFloat && conv.stride == 1 &&
         conv.weight.numel() <= most_weights;
}

at::Tensor convolve_by_hand(const at::Tensor& x, const padded_conv& conv) {
  if (x.dim() != 3 || conv.weight.size(1) != x.size(1) || conv.kernel() < 1 ||
      (conv.bias.defined() && conv.bias.numel() != conv.weight.size(0)))
    throw std::runtime_error("a convolution of other channels than its input");
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
  cpu::parallel_for(0, x.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto n = begin; n < end; ++n)
      cpu::convolve(from.const_data_ptr<float>() + n * from.stride(0), from.stride(1), by, length, nullptr, 0,
                    {to + n * by.out * length, length});
  });
  return result;
}

at::Tensor padded_conv::operator()(const at::Tensor& x) const {
  if (convolves_by_hand(x, *this))
    return convolve_by_hand(left + right > 0 ? at::constant_pad_nd(x, {left, right}) : x, *this);
  return left == right ? inside(x, left) : inside(at::constant_pad_nd(x, {left, right}));
}

at::Tensor padded_conv::inside(const at::Tensor& x, std::int64_t padding) const {
  const bool rounded = rounds(x, weight);
  auto y = at::conv1d(rounded ? x.to(at::kBFloat16) : x, weight, rounded ? at::Tensor() : bias, at::IntArrayRef(stride),
                      at::IntArrayRef(padding), at::IntArrayRef(dilation));
  if (!rounded) return y;
  y = y.to(x.scalar_type());
  return bias.defined() ? y.add_(bias.unsqueeze(1)) : y;
}

void padded_conv::use_bfloat16() {
  narrow(weight);
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
    std::vector<std::int64_t> one_each(static_cast<std::size_t>(value.dim()), 1);
    if (!one_each.empty()) one_each.front() = value.size(0);
    const auto g = from.at(base + gain, one_each).to(value.scalar_type());
    result.put(base + ".weight", at::_weight_norm(value, g, 0));
  }
  return result;
}

} // namespace parley::inference::speech
