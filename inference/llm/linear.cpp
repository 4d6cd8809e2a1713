#include "inference/llm/linear.hpp"

#include "inference/kernels/huge_pages.hpp"
#include "inference/kernels/parallel.hpp"
#include "inference/kernels/processor.hpp"
#include "inference/kernels/product.hpp"

#include <ATen/ATen.h>

#include <utility>

namespace parley::inference::llm {

namespace {

/// The number of rows up to which the hand-written product is faster than the library's: for any matrix, and for one
/// that fits in no cache.
constexpr std::int64_t always_few = 3, few_for_large = 16, large_numbers = 1 << 19;

/// With fewer rows the library on the CPU takes other code paths, which round differently, but rows must not depend on
/// each other.
constexpr std::int64_t least_rows = 4;

bool too_few_rows(const at::Tensor& x) {
  return x.is_cpu() && x.size(0) < least_rows;
}

/// [rows, in] x the parts side by side → `to` [rows, out]; x of the first type, parts and result of the second.
template<class Input, class Number>
void few_rows_products(const at::Tensor& x, const std::vector<at::Tensor>& parts, at::Tensor& to, bool add) {
  constexpr std::int64_t numbers_per_thread = 1 << 17;
  const auto dense = x.contiguous();
  const auto rows = x.size(0), in = x.size(1), stride = to.size(1);
  const auto* from = static_cast<const Input*>(dense.const_data_ptr());
  auto* into = static_cast<Number*>(to.mutable_data_ptr());
  for (const auto& part : parts) {
    const auto* matrix = static_cast<const Number*>(part.const_data_ptr());
    cpu::parallel_for(0, part.size(0), numbers_per_thread / in + 1, [&](std::int64_t begin, std::int64_t end) {
      cpu::product(from, rows, matrix + begin * in, end - begin, in, into + begin, stride, add);
    });
    into += part.size(0);
  }
}

/// Matrices and result float32 or bfloat16 as they are.
void few_rows_products(const at::Tensor& x, const std::vector<at::Tensor>& parts, at::Tensor& to, bool add) {
  if (to.scalar_type() == at::kFloat)
    few_rows_products<float, float>(x.to(at::kFloat), parts, to, add);
  else if (cpu::multiplies_bfloat16())
    few_rows_products<cpu::bfloat16, cpu::bfloat16>(x.to(at::kBFloat16), parts, to, add);
  else
    few_rows_products<float, cpu::bfloat16>(x.to(at::kFloat), parts, to, add);
}

/// The matrices as stored by AWQ, if all of them are quantized in groups that the kernel accepts.
std::vector<awq_matrix> all_quantized(const weights& from, std::span<const std::string_view> names, std::int64_t in) {
  std::vector<awq_matrix> result;
  for (auto name : names) {
    auto stored = from.quantized(name);
    if (!stored || stored->numbers.dim() != 2 || stored->numbers.size(0) != in || stored->scales.dim() != 2 ||
        stored->scales.size(0) < 1 || !quantized_matrix::takes(in / stored->scales.size(0)))
      return {};
    result.push_back(std::move(*stored));
  }
  return result;
}

} // namespace

linear::linear(at::Tensor matrix) : parts_{matrix.contiguous()}, out_(matrix.size(0)) {}

linear::linear(const weights& from, std::span<const std::string_view> names, std::int64_t in, quantization format) {
  if (format == quantization::int4)
    if (auto stored = all_quantized(from, names, in); !stored.empty()) {
      quantized_.emplace(stored);
      for (const auto& one : stored) out_ += one.scales.size(1);
      return;
    }
  auto mapped = true;
  for (auto name : names) {
    mapped &= from.mapped(name);
    parts_.push_back(from.tensor(name, {-1, in}).contiguous());
    out_ += parts_.back().size(0);
  }
  if (parts_.size() > 1 && (!mapped || format != quantization::none)) parts_ = {at::cat(parts_)};
  if (format == quantization::none) {
    if (!mapped)
      for (auto& part : parts_) part = cpu::in_huge_pages(part); // what is mapped is shared with other processes
    return;
  }
  quantized_.emplace(parts_.front(), format);
  parts_.clear();
}

std::size_t linear::bytes() const {
  std::size_t sum = quantized_ ? quantized_->bytes() : 0;
  for (const auto& part : parts_) sum += part.nbytes();
  return sum;
}

bool linear::few_rows(const at::Tensor& x) const {
  const auto rows = x.size(0);
  if (x.scalar_type() == at::kBFloat16) return x.is_cpu() && rows <= few_for_large;
  return x.is_cpu() && x.scalar_type() == at::kFloat &&
         (rows <= always_few || (rows <= few_for_large && out_ * x.size(1) >= large_numbers));
}

at::Tensor linear::operator()(const at::Tensor& x) const {
  if (quantized_) return quantized_->product(x);
  const auto rows = x.size(0);
  if (few_rows(x)) {
    auto y = at::empty({rows, out_}, x.options());
    few_rows_products(x, parts_, y, false);
    return y;
  }
  if (too_few_rows(x)) return (*this)(at::constant_pad_nd(x, {0, 0, 0, least_rows - rows})).narrow(0, 0, rows);
  if (parts_.size() == 1) return at::linear(x, parts_.front());
  auto y = at::empty({rows, out_}, x.options());
  std::int64_t column = 0;
  for (const auto& part : parts_) {
    auto to = y.narrow(1, column, part.size(0));
    at::mm_out(to, x, part.t());
    column += part.size(0);
  }
  return y;
}

void linear::add_to(at::Tensor& to, const at::Tensor& x) const {
  if (quantized_) {
    quantized_->add_product(to, x);
    return;
  }
  if (few_rows(x)) {
    few_rows_products(x, parts_, to, true);
    return;
  }
  if (parts_.size() == 1 && !too_few_rows(x))
    at::addmm_out(to, to, x, parts_.front().t());
  else
    to.add_((*this)(x));
}

} // namespace parley::inference::llm
