#pragma once

#include "config/settings.hpp"
#include "inference/formats/awq.hpp"
#include "inference/kernels/int4.hpp"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace parley::inference::llm {

using config::quantization;

/// A matrix in fewer bits: int8 with one scale per row, or int4 with a scale and an offset per group of 32 numbers, or of
/// AWQ's group size. Inputs are rounded to bfloat16, whatever their dtype, and sums are float32. On the CPU, few rows are
/// multiplied by our own loops in integers (kernels/fixed_point.hpp); for more, some rows of the matrix at
/// a time are unpacked and multiplied by LibTorch, in bfloat16 where the processor has such products, else in float32. On
/// an accelerator, LibTorch's int4 kernel does all of it.
class quantized_matrix {
public:
  /// `matrix` [out, in], of any dtype, on any device. Throws std::runtime_error if its sizes don't fit the format.
  quantized_matrix(const at::Tensor& matrix, quantization format);

  /// int4 as quantized by AWQ: its numbers are used unchanged; scales and zero points are rounded to bfloat16, as the
  /// kernels require. Takes one or several matrices with the same inputs, stacked along the outputs. Throws
  /// std::runtime_error if they don't fit each other or the kernel.
  explicit quantized_matrix(std::span<const awq_matrix> stored);

  /// Whether the kernels accept groups of this many inputs.
  static bool takes(std::int64_t group);

  /// [rows, in] → [rows, out], in x's dtype.
  at::Tensor product(const at::Tensor& x) const;

  /// to [rows, out] += the same.
  void add_product(at::Tensor& to, const at::Tensor& x) const;

  /// The same on the CPU in float32, whose last rounding is that of the sums, whatever the number of rows: for logits.
  at::Tensor precise_product(const at::Tensor& x) const;

  std::size_t bytes() const { return packed_.nbytes() + scales_.nbytes(); }

private:
  void pack(const at::Tensor& steps, const at::Tensor& scale, const at::Tensor& offset, at::Device device);
  cpu::int4_rows int4() const;
  void unpack(std::int64_t first, std::int64_t count, at::Tensor& to) const;
  void few(const at::Tensor& x, at::Tensor& to, bool add) const;
  at::Tensor few(const at::Tensor& x) const;
  at::Tensor many(const at::Tensor& narrow) const;

  quantization format_;
  std::int64_t out_, in_;
  std::int64_t group_; ///< for int4
  at::Tensor packed_;  ///< int8: [out, in]; int4: [out, in / 2] as in int4_rows, or as LibTorch's kernel requires
  at::Tensor scales_;  ///< int8: float32 [out]; int4: bfloat16 [out, in / group, 2], or [in / group, padded out, 2]
};

} // namespace parley::inference::llm
