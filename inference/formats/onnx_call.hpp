#pragma once

#include "inference/formats/onnx_graph.hpp"

#include <ATen/ATen.h>

#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace parley::inference::speech::onnx {

using at::Tensor;
using sizes = std::vector<std::int64_t>;

/// A node and its inputs. Shapes and indices (integers, truth values) stay on the CPU; all else on the runner's device.
struct call {
  const onnx_node& node;
  std::vector<Tensor> in;
  at::Device device;
  bool whole_kernel; ///< how a pool with count_include_pad divides a partial window: true = by the size of the whole
                     ///< kernel

  bool has(std::size_t i) const { return i < in.size() && in[i].defined(); }
  const Tensor& operator[](std::size_t i) const {
    if (!has(i)) throw std::runtime_error("an input is missing");
    return in[i];
  }
  Tensor optional(std::size_t i) const { return has(i) ? in[i] : Tensor(); }
};

inline sizes numbers(const Tensor& tensor) {
  const auto flat = tensor.to(at::kCPU, at::kLong).contiguous();
  return {flat.const_data_ptr<std::int64_t>(), flat.const_data_ptr<std::int64_t>() + flat.numel()};
}

/// `axes` as an attribute (opset < 13) or as an input, made non-negative.
inline sizes axes_of(const call& c, std::size_t input) {
  auto axes = c.node.integers("axes");
  if (axes.empty() && c.has(input)) axes = numbers(c[input]);
  return axes;
}

/// More than any network of a voice has in one tensor.
inline constexpr std::int64_t most_numbers = 1 << 27;

/// Throws if a tensor of this shape has more numbers than that. Called before it is made.
inline void check_size(at::IntArrayRef shape) {
  std::int64_t count = 1;
  for (const auto extent : shape)
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count) || count > most_numbers)
      throw std::runtime_error("a tensor of an impossible size");
}

inline sizes from_front(sizes axes, std::int64_t dims) {
  for (auto& axis : axes) axis = axis < 0 ? axis + dims : axis;
  return axes;
}

/// Executes a node. Throws std::runtime_error or c10::Error when it can't.
using operation = Tensor (*)(const call&);

// The operators that move a window over the last dimensions.
Tensor convolve(const call& c);
Tensor average_pool(const call& c);
Tensor pad(const call& c);

/// All known operators, by name.
const std::unordered_map<std::string_view, operation>& operations();

} // namespace parley::inference::speech::onnx
