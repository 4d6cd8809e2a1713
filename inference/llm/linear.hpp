#pragma once

#include "inference/formats/checkpoint.hpp"
#include "inference/llm/quantized.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace parley::inference::llm {

/// One or several matrices applied to the same rows, with the results side by side: y = x [w1; w2; …]^T.
class linear {
public:
  linear() = default;

  /// `matrix` [out, in].
  explicit linear(at::Tensor matrix);

  /// Matrices of `from`, each [-1, in]. Mapped ones stay where they are; copied ones are joined into one matrix, and so
  /// are quantized ones.
  linear(const weights& from, std::span<const std::string_view> names, std::int64_t in,
         quantization format = quantization::none);

  /// [rows, in] → [rows, out], in x's dtype, which must be that of the weights unless they are quantized. A row depends
  /// on the other rows only by rounding.
  at::Tensor operator()(const at::Tensor& x) const;

  /// to += this(x), in place; `to` is [rows, out], dense.
  void add_to(at::Tensor& to, const at::Tensor& x) const;

  std::int64_t out() const { return out_; }

  /// Size of its weights, mapped or not.
  std::size_t bytes() const;

private:
  bool few_rows(const at::Tensor& x) const;

  std::vector<at::Tensor> parts_; ///< empty if quantized
  std::optional<quantized_matrix> quantized_;
  std::int64_t out_ = 0;
};

} // namespace parley::inference::llm
