#pragma once

#include "config/settings.hpp"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

namespace parley::inference::llm {

using config::quantization;

/// A matrix in fewer bits, for the kernels that LibTorch brings: int8 with one scale a row, or int4 in groups of 32
/// numbers with a scale and an offset each. Products run in bfloat16, whatever comes in.
class quantized_matrix {
public:
  /// `matrix` [out, in], any dtype and device. Throws std::runtime_error when its sizes don't fit the format.
  quantized_matrix(const at::Tensor& matrix, quantization format);

  /// [rows, in] → [rows, out], of x's dtype.
  at::Tensor product(const at::Tensor& x) const;

  std::size_t bytes() const { return packed_.nbytes() + scales_.nbytes(); }

private:
  quantization format_;
  std::int64_t out_;
  at::Tensor packed_; ///< int8: [out, in]; int4: as the kernel wants it
  at::Tensor scales_; ///< bfloat16; int8: [out]; int4: [in / 32, padded out, 2]
};

} // namespace parley::inference::llm
