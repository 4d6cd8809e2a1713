#include "inference/speech/onnx_runner.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

namespace parley::inference::speech {
namespace {

using at::Tensor;
using sizes = std::vector<std::int64_t>;

/// A node with its inputs at hand. Numbers that are shapes or indices (integers, truth values) stay on the CPU, all others
/// live on the runner's device.
struct call {
  const onnx_node& node;
  std::vector<Tensor> in;
  at::Device device;

  bool has(std::size_t i) const { return i < in.size() && in[i].defined(); }
  const Tensor& operator[](std::size_t i) const {
    if (!has(i)) throw std::runtime_error("an input is missing");
    return in[i];
  }
  Tensor optional(std::size_t i) const { return has(i) ? in[i] : Tensor(); }
};

sizes numbers(const Tensor& tensor) {
  const auto flat = tensor.to(at::kCPU, at::kLong).contiguous();
  return {flat.const_data_ptr<std::int64_t>(), flat.const_data_ptr<std::int64_t>() + flat.numel()};
}

/// `axes` as an attribute (opset < 13) or as an input, made non-negative.
sizes axes_of(const call& c, std::size_t input) {
  auto axes = c.node.integers("axes");
  if (axes.empty() && c.has(input)) axes = numbers(c[input]);
  return axes;
}

sizes from_front(sizes axes, std::int64_t dims) {
  for (auto& axis : axes) axis = axis < 0 ? axis + dims : axis;
  return axes;
}

/// Spatial dimensions of a convolution or pool: strides, dilations, and the padding before and after each.
struct window {
  sizes strides, dilations, before;
  Tensor input; ///< padded here where the two sides differ
};

window window_of(const call& c, std::size_t dims) {
  window w{c.node.integers("strides"), c.node.integers("dilations"), {}, c[0]};
  auto pads = c.node.integers("pads");
  if (w.strides.empty()) w.strides.assign(dims, 1);
  if (w.dilations.empty()) w.dilations.assign(dims, 1);
  if (pads.empty()) pads.assign(2 * dims, 0);
  if (const auto automatic = c.node.text("auto_pad", "NOTSET"); automatic != "NOTSET" && automatic != "VALID")
    throw std::runtime_error("automatic padding is not known");
  w.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(dims));
  if (!std::equal(w.before.begin(), w.before.end(), pads.begin() + static_cast<std::ptrdiff_t>(dims))) {
    sizes both;
    for (auto d = dims; d-- > 0;) {
      both.push_back(pads[d]);
      both.push_back(pads[d + dims]);
    }
    w.input = at::constant_pad_nd(w.input, both);
    w.before.assign(dims, 0);
  }
  return w;
}

Tensor convolve(const call& c) {
  const auto dims = static_cast<std::size_t>(c[1].dim() - 2);
  const auto w = window_of(c, dims);
  return at::convolution(w.input, c[1], c.optional(2), w.strides, w.before, w.dilations, false, sizes(dims, 0),
                         c.node.integer("group", 1));
}

/// ceil_mode: a last partial window is divided by its real elements, as torch and onnxruntime 1.31 do.
Tensor average_pool(const call& c) {
  const auto kernel = c.node.integers("kernel_shape");
  const auto pads = c.node.integers("pads");
  if (std::any_of(pads.begin(), pads.end(), [](auto p) { return p != 0; }))
    throw std::runtime_error("padding is not known");
  const auto w = window_of(c, kernel.size());
  const bool ceil = c.node.integer("ceil_mode", 0) != 0;
  return kernel.size() == 1 ? at::avg_pool1d(w.input, kernel, w.strides, {0}, ceil, false)
                            : at::avg_pool2d(w.input, kernel, w.strides, {0, 0}, ceil, false);
}

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

Tensor slice(const call& c) {
  auto from = c.node.integers("starts"), to = c.node.integers("ends");
  sizes axes = c.node.integers("axes"), steps;
  if (from.empty()) {
    from = numbers(c[1]);
    to = numbers(c[2]);
    if (c.has(3)) axes = numbers(c[3]);
    if (c.has(4)) steps = numbers(c[4]);
  }
  auto result = c[0];
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto step = i < steps.size() ? steps[i] : 1;
    if (step < 1) throw std::runtime_error("a backward slice is not known");
    result = result.slice(i < axes.size() ? axes[i] : static_cast<std::int64_t>(i), from[i], to[i], step);
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
  auto found = c.node.attributes.find("value");
  if (found == c.node.attributes.end() || !found->second.tensor.defined())
    throw std::runtime_error("only tensors are known");
  const auto& value = found->second.tensor;
  return value.is_floating_point() ? value.to(c.device) : value;
}

Tensor constant_of_shape(const call& c) {
  auto found = c.node.attributes.find("value");
  auto value = found == c.node.attributes.end() ? at::zeros({1}) : found->second.tensor;
  if (value.is_floating_point()) value = value.to(c.device);
  return value.reshape({}).expand(numbers(c[0])).contiguous();
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

using operation = Tensor (*)(const call&);

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
           order.push_back(axis); // the default is all axes backwards
         return c[0].permute(order);
       }},
      {"Unsqueeze", unsqueeze},
      {"Where", where},
  };
  return known;
}

} // namespace

onnx_runner::onnx_runner(onnx_graph graph, at::Device device)
    : graph_(std::move(graph)), device_(device), dead_after_(graph_.nodes.size()) {
  if (graph_.inputs.size() != 1 || graph_.outputs.empty())
    throw std::runtime_error(graph_.origin + ": a graph of one input was expected");
  std::unordered_map<std::string, std::size_t> last_reader;
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const auto& node = graph_.nodes[i];
    if (!operations().contains(node.op) || node.outputs.empty())
      throw std::runtime_error(graph_.origin + ": operator " + node.op + " is not known");
    for (const auto& name : node.inputs) last_reader[name] = i;
  }
  for (const auto& [name, reader] : last_reader)
    if (!graph_.initializers.contains(name) && name != graph_.outputs[0]) dead_after_[reader].push_back(name);
  for (auto& [name, tensor] : graph_.initializers)
    if (tensor.is_floating_point()) tensor = tensor.to(device_);
}

Tensor onnx_runner::run(const Tensor& input) const {
  c10::InferenceMode inference;
  auto values = graph_.initializers;
  values[graph_.inputs[0]] = input.to(device_);
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const auto& node = graph_.nodes[i];
    call c{node, {}, device_};
    for (const auto& name : node.inputs) {
      auto found = values.find(name);
      if (!name.empty() && found == values.end())
        throw std::runtime_error(graph_.origin + ": node " + node.name + " reads \"" + name + "\", which nobody makes");
      c.in.push_back(name.empty() ? Tensor() : found->second);
    }
    try {
      values[node.outputs[0]] = operations().at(node.op)(c);
    } catch (const c10::Error& error) {
      throw std::runtime_error(graph_.origin + ": node " + node.name + ": " + error.what_without_backtrace());
    } catch (const std::exception& error) {
      throw std::runtime_error(graph_.origin + ": node " + node.name + ": " + error.what());
    }
    for (const auto& name : dead_after_[i]) values.erase(name);
  }
  return values.at(graph_.outputs[0]);
}

} // namespace parley::inference::speech
