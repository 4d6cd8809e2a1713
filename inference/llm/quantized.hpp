#pragma once

#include "config/settings.hpp"
#include "inference/formats/awq.hpp"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace parley::inference::llm {

using config::quantization;

/// A matrix in fewer bits, for LibTorch's kernels: int8 with one scale per row, or int4 with a scale and an offset per
/// group of 32 numbers, or of AWQ's group size. Products run in bfloat16, whatever the input's dtype.
class quantized_matrix {
public:
  /// `matrix` [out, in], of any dtype, on any device. Throws std::runtime_error if its sizes don't fit the format.
  quantized_matrix(const at::Tensor& matrix, quantization format);

  /// int4 as quantized by AWQ: its numbers are used unchanged; scales and zero points are rounded to bfloat16, as the
  /// kernel requires. Takes one or several matrices with the same inputs, stacked along the outputs. Throws
  /// std::runtime_error if they don't fit each other or the kernel.
  explicit quantized_matrix(std::span<const awq_matrix> stored);

  /// Whether the kernel accepts groups of this many inputs.
  static bool takes(std::int64_t group);

  /// [rows, in] → [rows, out], in x's dtype.
  at::Tensor product(const at::Tensor& x) const;

  std::size_t bytes() const { return packed_.nbytes() + scales_.nbytes(); }

private:
  void pack(const at::Tensor& steps, const at::Tensor& scale, const at::Tensor& offset);

  quantization format_;
  std::int64_t out_;
  std::int64_t group_; ///< for int4
  at::Tensor packed_;  ///< int8: [out, in]; int4: as the kernel requires
  at::Tensor scales_;  ///< bfloat16; int8: [out]; int4: [in / group, padded out, 2]
};

} // namespace parley::inference::llm
