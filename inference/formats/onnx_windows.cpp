#include "inference/formats/onnx_call.hpp"

#include <algorithm>

namespace parley::inference::speech::onnx {
namespace {

/// Spatial dimensions of a convolution or pool: strides, dilations, and the padding before and after each.
struct window {
  sizes strides, dilations, before;
  Tensor input; ///< already padded if the two sides differ
};

window window_of(const call& c, std::size_t dims) {
  window w{c.node.integers("strides"), c.node.integers("dilations"), {}, c[0]};
  auto pads = c.node.integers("pads");
  if (w.strides.empty()) w.strides.assign(dims, 1);
  if (w.dilations.empty()) w.dilations.assign(dims, 1);
  if (pads.empty()) pads.assign(2 * dims, 0);
  if (const auto automatic = c.node.text("auto_pad", "NOTSET"); automatic != "NOTSET" && automatic != "VALID")
    throw std::runtime_error("automatic padding is not known");
  if (pads.size() != 2 * dims) throw std::runtime_error("the pads do not fit the axes");
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

/// [before, after] for every axis, in the order that `constant_pad_nd` expects: the last axis first.
Tensor padded(const Tensor& x, const sizes& before, const sizes& after, double value) {
  sizes pairs, shape;
  for (auto axis = std::size_t{0}; axis < before.size(); ++axis) {
    const auto from = static_cast<std::int64_t>(axis) + x.dim() - std::ssize(before);
    if (from < 0 || std::abs(before[axis]) > most_numbers || std::abs(after[axis]) > most_numbers)
      throw std::runtime_error("a padding of an impossible size");
    shape.push_back(std::max(x.size(from) + before[axis] + after[axis], std::int64_t{0}));
  }
  check_size(shape);
  for (auto axis = before.size(); axis-- > 0;) {
    pairs.push_back(before[axis]);
    pairs.push_back(after[axis]);
  }
  return at::constant_pad_nd(x, pairs, value);
}

} // namespace

Tensor convolve(const call& c) {
  if (c[1].dim() < 3) throw std::runtime_error("a convolution over no axis");
  const auto dims = static_cast<std::size_t>(c[1].dim() - 2);
  const auto w = window_of(c, dims);
  return at::convolution(w.input, c[1], c.optional(2), w.strides, w.before, w.dilations, false, sizes(dims, 0),
                         c.node.integer("group", 1));
}

/// The mean over the elements of each window that count. Padding counts only with count_include_pad. Positions beyond
/// the padding, in the last partial window of ceil_mode, count only if `whole_kernel` is true as well.
Tensor average_pool(const call& c) {
  const auto kernel = c.node.integers("kernel_shape");
  const auto dims = kernel.size();
  const auto strides = c.node.integers("strides").empty() ? sizes(dims, 1) : c.node.integers("strides");
  const auto pads = c.node.integers("pads").empty() ? sizes(2 * dims, 0) : c.node.integers("pads");
  const auto dilations = c.node.integers("dilations");
  const auto& x = c[0];
  if (dims < 1 || dims > 2 || x.dim() != static_cast<std::int64_t>(dims) + 2 || strides.size() != dims ||
      pads.size() != 2 * dims)
    throw std::runtime_error("this kind of pool is not known");
  if (std::any_of(dilations.begin(), dilations.end(), [](auto d) { return d != 1; }) ||
      c.node.text("auto_pad", "NOTSET") != "NOTSET")
    throw std::runtime_error("dilations and automatic padding are not known");
  const bool ceil = c.node.integer("ceil_mode", 0) != 0, pads_count = c.node.integer("count_include_pad", 0) != 0;

  sizes before(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(dims));
  sizes after(pads.begin() + static_cast<std::ptrdiff_t>(dims), pads.end()), beyond(dims, 0);
  for (std::size_t d = 0; d < dims; ++d) {
    if (kernel[d] < 1 || strides[d] < 1) throw std::runtime_error("a window of no size");
    const auto size = x.size(static_cast<std::int64_t>(d) + 2), whole = size + before[d] + after[d];
    auto windows = (std::max<std::int64_t>(whole - kernel[d], 0) + strides[d] - 1) / strides[d] + 1;
    if ((windows - 1) * strides[d] >= size + before[d]) --windows; // a window must begin before the padding at the end
    if (ceil) beyond[d] = std::max<std::int64_t>((windows - 1) * strides[d] + kernel[d] - whole, 0);
  }
  const sizes none(dims, 0);
  auto held = at::ones_like(x.slice(0, 0, 1).slice(1, 0, 1));
  held = padded(padded(held, before, after, pads_count ? 1 : 0), none, beyond, pads_count && c.whole_kernel ? 1 : 0);
  const auto sound = padded(padded(x, before, after, 0), none, beyond, 0);
  auto pool = [&](const Tensor& from) {
    return dims == 1 ? at::avg_pool1d(from, kernel, strides) : at::avg_pool2d(from, kernel, strides);
  };
  return pool(sound) / pool(held);
}

/// `pads` is an attribute or, since opset 11, an input; since opset 18 it may name only some axes. Exporters write zero
/// pads before every pool; those cost nothing in any mode.
Tensor pad(const call& c) {
  const auto& x = c[0];
  auto pads = c.node.integers("pads");
  if (pads.empty() && c.has(1)) pads = numbers(c[1]);
  if (std::all_of(pads.begin(), pads.end(), [](auto p) { return p == 0; })) return x;
  const auto mode = c.node.text("mode", "constant");
  if (mode != "constant") throw std::runtime_error("padding of mode " + mode + " is not known");
  sizes axes;
  if (c.has(3)) axes = from_front(numbers(c[3]), x.dim());
  if (axes.empty())
    for (std::int64_t axis = 0; axis < x.dim(); ++axis) axes.push_back(axis);
  if (pads.size() != 2 * axes.size()) throw std::runtime_error("the pads do not fit the axes");
  const auto dims = static_cast<std::size_t>(x.dim());
  sizes before(dims, 0), after(dims, 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    before.at(static_cast<std::size_t>(axes[i])) = pads[i];
    after.at(static_cast<std::size_t>(axes[i])) = pads[i + axes.size()];
  }
  return padded(x, before, after, c.has(2) ? c[2].to(at::kCPU, at::kDouble).item<double>() : c.node.real("value", 0));
}

} // namespace parley::inference::speech::onnx
