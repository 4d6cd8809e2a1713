#pragma once

#include "inference/formats/tensor_map.hpp"
#include "inference/llm/quantized.hpp"

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

// The small layers of the talker, each with its weights.
namespace parley::inference::speech {

/// x W^T + b over the last dimension, in x's dtype. The bias is optional.
struct linear {
  at::Tensor weight, bias;                                ///< [out, in], [out]
  std::shared_ptr<const llm::quantized_matrix> quantized; ///< instead of `weight`

  linear() = default;
  linear(const tensor_map& from, const std::string& name)
      : weight(from.at(name + ".weight", {-1, -1})), bias(from.find(name + ".bias")) {}

  at::Tensor operator()(const at::Tensor& x) const;

  /// From now on its input and its result are of this dtype.
  void convert(at::ScalarType dtype);

  /// From now on, factors are rounded to bfloat16, on a CPU that has such products; sums and the bias are not.
  void use_bfloat16();

  /// Keeps the weights in 8 bits, on the CPU: for few rows, where reading the weights is what costs.
  void use_int8();
};

/// Layer norm over the last dimension.
struct layer_norm {
  at::Tensor weight, bias; ///< [n] each
  double eps = 1e-5;

  layer_norm() = default;
  layer_norm(const tensor_map& from, const std::string& name, double epsilon)
      : weight(from.at(name + ".weight", {-1})), bias(from.at(name + ".bias", {-1})), eps(epsilon) {}

  at::Tensor operator()(const at::Tensor& x) const { return at::layer_norm(x, {weight.size(0)}, weight, bias, eps); }

  /// As `linear::convert`.
  void convert(at::ScalarType dtype);
};

/// [B, in, T] → [B, out, T']. Adds zeros on both sides, then convolves without further padding.
struct padded_conv {
  at::Tensor weight, bias; ///< [out, in, kernel], [out]
  std::int64_t left = 0, right = 0, dilation = 1, stride = 1;

  padded_conv() = default;
  padded_conv(const tensor_map& from, const std::string& name)
      : weight(from.at(name + ".weight", {-1, -1, -1}).contiguous()), bias(from.find(name + ".bias")) {}

  std::int64_t kernel() const { return weight.size(2); }

  at::Tensor operator()(const at::Tensor& x) const;

  /// The convolution alone, with as many zeros on each side.
  at::Tensor inside(const at::Tensor& x, std::int64_t padding = 0) const;

  /// As `linear::use_bfloat16`.
  void use_bfloat16();
};

/// The same as a matrix product, over windows of rows that lie anywhere in `rows`: one call for many sequences.
struct window_conv {
  at::Tensor weight, bias; ///< [out, kernel * in], [out]
  std::int64_t kernel = 0;

  window_conv() = default;

  /// weight [out, in, kernel]
  window_conv(const at::Tensor& of, at::Tensor bias_of)
      : weight(of.transpose(1, 2).flatten(1).contiguous()), bias(std::move(bias_of)), kernel(of.size(2)) {}

  /// rows [R, in] → [windows, out]; `windows` [windows * kernel]: the rows of each.
  at::Tensor operator()(const at::Tensor& rows, const at::Tensor& windows) const;

  /// As `linear::convert` and `linear::use_bfloat16`.
  void convert(at::ScalarType dtype);
  void use_bfloat16();
};

/// Whether to compute a convolution with our own loops: float32 in plain memory, with weights that fit in a cache.
bool convolves_by_hand(const at::Tensor& x, const padded_conv& conv);

/// With our own loops, without padding and stride: [B, in, T] → [B, out, T - (kernel - 1) dilation]. Reads `x` in
/// place; its last axis must be dense. Throws std::runtime_error if `x` has a different number of channels
/// from the weights.
at::Tensor convolve_by_hand(const at::Tensor& x, const padded_conv& conv);

/// Folds every pair `X.parametrizations.weight.original0/1` (g and v) into `X.weight` = g v / |v|, with the norm over
/// all axes but the first (docs/model/talker.md 2). Tensors whose names begin with `widened` are converted to double
/// first.
tensor_map fold_weight_norm(const tensor_map& from, const std::string& widened = {});

} // namespace parley::inference::speech
