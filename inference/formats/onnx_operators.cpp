#include "inference/formats/onnx_call.hpp"

#include <algorithm>

namespace parley::inference::speech::onnx {
namespace {

Tensor gather(const call& c) {
  const auto& data = c[0];
  auto axis = c.node.integer("axis", 0);
  axis = axis < 0 ? axis + data.dim() : axis;
  auto index = c[1].to(data.device(), at::kLong);
  index = at::where(index < 0, index + data.size(axis), index);
  sizes shape(data.sizes().begin(), data.sizes().begin() + axis);
  shape.insert(shape.end(), index.sizes().begin(), index.sizes().end());
  shape.insert(shape.end(), data.sizes().begin() + axis + 1, data.sizes().end());
  return data.index_select(axis, index.reshape(-1)).reshape(shape);
}

/// Reversed slice: starts at `from` and stops before `to`. Ends outside the range are clamped.
Tensor backwards(const Tensor& x, std::int64_t axis, std::int64_t from, std::int64_t to, std::int64_t step) {
  const auto size = x.size(axis);
  auto clamped = [&](std::int64_t end) { return std::clamp<std::int64_t>(end < 0 ? end + size : end, -1, size - 1); };
  sizes order;
  for (auto i = clamped(from), last = to < -size ? -1 : clamped(to); i > last; i += step) order.push_back(i);
  return x.index_select(axis, at::tensor(order, at::kLong).to(x.device()));
}

Tensor slice(const call& c) {
  auto from = c.node.integers("starts"), to = c.node.integers("ends");
  sizes axes = c.node.integers("axes"), steps;
  if (from.empty()) {
    from = numbers(c[1]);
    to = numbers(c[2]);
    if (c.has(3)) axes = numbers(c[3]);
    if (c.has(4)) steps = numbers(c[4]);
  }
  if (to.size() != from.size()) throw std::runtime_error("a slice of which only one end is known");
  auto result = c[0];
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto step = i < steps.size() ? steps[i] : 1;
    const auto axis = i < axes.size() ? axes[i] : static_cast<std::int64_t>(i);
    if (step == 0) throw std::runtime_error("a slice that does not advance");
    result = step > 0 ? result.slice(axis, from[i], to[i], step) : backwards(result, axis, from[i], to[i], step);
  }
  return result;
}

Tensor reshape(const call& c) {
  auto shape = numbers(c[1]);
  if (c.node.integer("allowzero", 0) == 0)
    for (std::size_t i = 0; i < shape.size(); ++i)
      shape[i] = shape[i] == 0 ? c[0].size(static_cast<std::int64_t>(i)) : shape[i];
  return c[0].reshape(shape);
}

Tensor expand(const call& c) {
  auto shape = numbers(c[1]);
  const auto have = c[0].dim();
  if (static_cast<std::int64_t>(shape.size()) < have)
    shape.insert(shape.begin(), static_cast<std::size_t>(have) - shape.size(), 1);
  for (std::int64_t i = 0; i < have; ++i) {
    auto& wanted = shape[shape.size() - static_cast<std::size_t>(have - i)];
    wanted = wanted == 1 ? c[0].size(i) : wanted;
  }
  check_size(shape);
  return c[0].expand(shape);
}

Tensor squeeze(const call& c) {
  auto axes = from_front(axes_of(c, 1), c[0].dim());
  auto result = c[0];
  if (axes.empty()) return result.squeeze();
  std::sort(axes.rbegin(), axes.rend());
  for (auto axis : axes) result = result.squeeze(axis);
  return result;
}

Tensor unsqueeze(const call& c) {
  auto axes = axes_of(c, 1);
  auto result = c[0];
  axes = from_front(axes, result.dim() + static_cast<std::int64_t>(axes.size()));
  std::sort(axes.begin(), axes.end());
  for (auto axis : axes) result = result.unsqueeze(axis);
  return result;
}

template<class Reduce>
Tensor reduce(const call& c, Reduce apply) {
  auto axes = from_front(axes_of(c, 1), c[0].dim());
  if (axes.empty())
    for (std::int64_t i = 0; i < c[0].dim(); ++i) axes.push_back(i);
  return apply(c[0], axes, c.node.integer("keepdims", 1) != 0);
}

Tensor product(const Tensor& x, const sizes& axes, bool keep) {
  auto result = x;
  for (auto axis : axes) result = result.prod(axis, true);
  if (!keep) {
    auto backwards = axes;
    std::sort(backwards.rbegin(), backwards.rend());
    for (auto axis : backwards) result = result.squeeze(axis);
  }
  return result;
}

Tensor general_multiply(const call& c) {
  const auto a = c.node.integer("transA", 0) ? c[0].t() : c[0], b = c.node.integer("transB", 0) ? c[1].t() : c[1];
  auto result = at::matmul(a, b) * c.node.real("alpha", 1);
  return c.has(2) ? result + c[2] * c.node.real("beta", 1) : result;
}

Tensor cast(const call& c) {
  switch (c.node.integer("to", 1)) {
  case 1: return c[0].to(c.device, at::kFloat);
  case 6: return c[0].to(at::kCPU, at::kInt);
  case 7: return c[0].to(at::kCPU, at::kLong);
  case 9: return c[0].to(at::kCPU, at::kBool);
  case 11: return c[0].to(c.device, at::kDouble);
  default: throw std::runtime_error("this type is not known");
  }
}

Tensor constant(const call& c) {
  for (const auto& [name, attribute] : c.node.attributes) {
    if (name == "value" && attribute.tensor.defined())
      return attribute.tensor.is_floating_point() ? attribute.tensor.to(c.device) : attribute.tensor;
    if (name == "value_int") return at::scalar_tensor(attribute.integer, at::kLong);
    if (name == "value_ints") return at::tensor(attribute.integers, at::kLong);
    if (name == "value_float") return at::scalar_tensor(attribute.real, at::kFloat).to(c.device);
    if (name == "value_floats") return at::tensor(attribute.reals, at::kFloat).to(c.device);
  }
  throw std::runtime_error("only tensors and numbers are known");
}

Tensor constant_of_shape(const call& c) {
  auto found = c.node.attributes.find("value");
  auto value = found == c.node.attributes.end() ? at::zeros({1}) : found->second.tensor;
  if (value.is_floating_point()) value = value.to(c.device);
  const auto shape = numbers(c[0]);
  check_size(shape);
  return value.reshape({}).expand(shape).contiguous();
}

Tensor where(const call& c) {
  const auto truth = c[0].to(at::kBool);
  return at::where(truth.to(c[1].device()), c[1], c[2]);
}

Tensor concatenate(const call& c) {
  return at::cat(c.in, c.node.integer("axis", 0));
}

Tensor flatten(const call& c) {
  const auto axis = c.node.integer("axis", 1);
  std::int64_t rows = 1;
  for (std::int64_t i = 0; i < (axis < 0 ? axis + c[0].dim() : axis); ++i) rows *= c[0].size(i);
  return c[0].reshape({rows, -1});
}

Tensor shape_of(const call& c) {
  return at::tensor(c[0].sizes().vec(), at::kLong);
}

Tensor divide(const call& c) {
  return c[0].is_floating_point() ? c[0] / c[1] : at::div(c[0], c[1], "trunc");
}

} // namespace

const std::unordered_map<std::string_view, operation>& operations() {
  static const std::unordered_map<std::string_view, operation> known{
      {"Add", [](const call& c) { return c[0] + c[1]; }},
      {"AveragePool", average_pool},
      {"BatchNormalization",
       [](const call& c) {
         return at::batch_norm(c[0], c[1], c[2], c[3], c[4], false, 0, c.node.real("epsilon", 1e-5F), false);
       }},
      {"Cast", cast},
      {"Concat", concatenate},
      {"Constant", constant},
      {"ConstantOfShape", constant_of_shape},
      {"Conv", convolve},
      {"Div", divide},
      {"Dropout", [](const call& c) { return c[0]; }},
      {"Equal", [](const call& c) { return at::eq(c[0], c[1]); }},
      {"Expand", expand},
      {"Flatten", flatten},
      {"Gather", gather},
      {"Gemm", general_multiply},
      {"Identity", [](const call& c) { return c[0]; }},
      {"LayerNormalization",
       [](const call& c) {
         return at::layer_norm(c[0], {c[0].size(-1)}, c[1], c.optional(2), c.node.real("epsilon", 1e-5F));
       }},
      {"MatMul", [](const call& c) { return at::matmul(c[0], c[1]); }},
      {"Mul", [](const call& c) { return c[0] * c[1]; }},
      {"Pad", pad},
      {"Pow", [](const call& c) { return at::pow(c[0], c[1]); }},
      {"ReduceMean",
       [](const call& c) { return reduce(c, [](auto& x, auto& a, bool keep) { return x.mean(a, keep); }); }},
      {"ReduceProd", [](const call& c) { return reduce(c, product); }},
      {"ReduceSum",
       [](const call& c) { return reduce(c, [](auto& x, auto& a, bool keep) { return x.sum(a, keep); }); }},
      {"Relu", [](const call& c) { return at::relu(c[0]); }},
      {"Reshape", reshape},
      {"Shape", shape_of},
      {"Sigmoid", [](const call& c) { return at::sigmoid(c[0]); }},
      {"Slice", slice},
      {"Sqrt", [](const call& c) { return at::sqrt(c[0]); }},
      {"Squeeze", squeeze},
      {"Sub", [](const call& c) { return c[0] - c[1]; }},
      {"Tanh", [](const call& c) { return at::tanh(c[0]); }},
      {"Transpose",
       [](const call& c) {
         auto order = c.node.integers("perm");
         for (auto axis = order.empty() ? c[0].dim() : 0; axis-- > 0;)
           order.push_back(axis); // by default all axes are reversed
         return c[0].permute(order);
       }},
      {"Unsqueeze", unsqueeze},
      {"Where", where},
  };
  return known;
}

} // namespace parley::inference::speech::onnx
