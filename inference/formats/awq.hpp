#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace parley::inference {

/// A matrix of 4-bit numbers as AWQ stores it ("gemm"): eight to an int32, along the outputs.
struct awq_matrix {
  at::Tensor numbers; ///< `qweight` int32 [in, out / 8]
  at::Tensor zeros;   ///< `qzeros` int32 [in / group, out / 8]
  at::Tensor scales;  ///< `scales` float16 [in / group, out]
};

/// Throws std::runtime_error naming the shapes or types that don't match.
void check_awq(const awq_matrix& stored);

/// The eight numbers of each int32, in the order of the outputs: uint8 [rows, columns * 8].
at::Tensor unpack_awq(const at::Tensor& packed);

/// The matrix [out, in]: (number - zero) * scale, rounded to `dtype`. Throws like `check_awq`.
at::Tensor matrix_of(const awq_matrix& stored, at::ScalarType dtype);

/// Whether AWQ quantizes the tensor with this name, as it does the matrices of the language model's layers.
bool is_awq_name(std::string_view name);

} // namespace parley::inference
