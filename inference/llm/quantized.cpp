#include "inference/llm/quantized.hpp"

#include "inference/kernels/fixed_point.hpp"
#include "inference/kernels/huge_pages.hpp"
#include "inference/kernels/parallel.hpp"
#include "inference/kernels/processor.hpp"
#include "inference/kernels/rows.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace parley::inference::llm {

namespace {

constexpr std::int64_t group = 32, least_out = 16, tiles = 2; // for int4; the last two for LibTorch's kernel

/// The middle of a group's sixteen steps; its value is the group's offset.
constexpr double middle = 8;

/// Up to this many rows, unpacking for each block of them costs less than unpacking into memory.
constexpr std::int64_t few_rows = 16;

/// Rows of the matrix that are unpacked at a time: they stay in a core's cache.
constexpr std::int64_t panel_numbers = 1 << 18;

/// Numbers of the matrix from which another thread pays off.
constexpr std::int64_t numbers_per_thread = 1 << 17;

const cpu::bfloat16* narrow_numbers(const at::Tensor& t) {
  return static_cast<const cpu::bfloat16*>(t.const_data_ptr());
}

} // namespace

quantized_matrix::quantized_matrix(const at::Tensor& matrix, quantization format)
    : format_(format), out_(matrix.size(0)), in_(matrix.size(1)), group_(group) {
  const auto wide = matrix.to(at::kCPU, at::kFloat).contiguous();
  if (format == quantization::int8) {
    const auto scale = wide.abs().amax(1, true).div_(127).clamp_min_(1e-12);
    packed_ = cpu::in_huge_pages(wide.div(scale).round_().to(at::kChar).contiguous());
    scales_ = scale.squeeze(1).contiguous();
    return;
  }
  if (in_ % group != 0)
    throw std::runtime_error("engine.quant: int4 needs rows of a multiple of 32 numbers, not " + std::to_string(in_));
  auto steps = at::empty({out_, in_}, at::kByte);
  auto scale = at::empty({out_, in_ / group}, at::kBFloat16), offset = at::empty_like(scale);
  const auto* from = wide.const_data_ptr<float>();
  auto* to = steps.mutable_data_ptr<std::uint8_t>();
  auto *scales = static_cast<cpu::bfloat16*>(scale.mutable_data_ptr()),
       *offsets = static_cast<cpu::bfloat16*>(offset.mutable_data_ptr());
  cpu::parallel_for(0, wide.numel() / group, numbers_per_thread / group, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i)
      cpu::quantize_group(from + i * group, group, to + i * group, scales[i], offsets[i]);
  });
  pack(steps, scale, offset, matrix.device());
}

bool quantized_matrix::takes(std::int64_t group) {
  return group == 32 || group == 64 || group == 128 || group == 256;
}

quantized_matrix::quantized_matrix(std::span<const awq_matrix> stored)
    : format_(quantization::int4), out_(0), in_(0), group_(0) {
  std::vector<at::Tensor> steps, scales, offsets;
  for (const auto& one : stored) {
    check_awq(one);
    const auto size = one.numbers.size(0) / one.scales.size(0);
    if (!takes(size) || (group_ != 0 && size != group_))
      throw std::runtime_error("engine.quant: int4 has no kernel for groups of " + std::to_string(size));
    group_ = size;
    in_ = one.numbers.size(0);
    const auto scale = one.scales.to(at::kFloat);
    steps.push_back(unpack_awq(one.numbers).t());
    scales.push_back(scale.t());
    offsets.push_back(((middle - unpack_awq(one.zeros).to(at::kFloat)) * scale).t());
    out_ += one.scales.size(1);
  }
  const auto device = steps.front().device();
  pack(at::cat(steps).to(at::kByte).contiguous(), at::cat(scales).to(at::kBFloat16), at::cat(offsets).to(at::kBFloat16),
       device);
}

/// steps uint8 [out, in] of 0 to 15; scale and offset bfloat16 [out, groups]: a number is (step - middle) * scale + offset.
void quantized_matrix::pack(const at::Tensor& steps, const at::Tensor& scale, const at::Tensor& offset,
                            at::Device device) {
  const auto both = at::stack({scale, offset}, -1);
  if (device.is_cpu()) {
    auto packed = at::empty({out_, in_ / 2}, at::kByte);
    cpu::pack(steps.const_data_ptr<std::uint8_t>(), out_, in_, packed.mutable_data_ptr<std::uint8_t>());
    packed_ = cpu::in_huge_pages(std::move(packed));
    scales_ = cpu::in_huge_pages(both.contiguous());
    return;
  }
  const auto padding = (out_ + least_out - 1) / least_out * least_out - out_;
  const auto pairs = at::constant_pad_nd(steps, {0, 0, 0, padding}).view({out_ + padding, in_ / 2, 2}).to(device);
  packed_ =
      at::_convert_weight_to_int4pack(pairs.select(2, 0).bitwise_left_shift(4).bitwise_or(pairs.select(2, 1)), tiles);
  scales_ = at::constant_pad_nd(both, {0, 0, 0, 0, 0, padding}).transpose(0, 1).contiguous().to(device);
}

cpu::int4_rows quantized_matrix::int4() const {
  return {packed_.const_data_ptr<std::uint8_t>(), narrow_numbers(scales_), in_, group_};
}

/// Some rows of the matrix into `to` [at least count, in], float32 or bfloat16; int8 without the scales.
void quantized_matrix::unpack(std::int64_t first, std::int64_t count, at::Tensor& to) const {
  if (format_ == quantization::int8) {
    to.narrow(0, 0, count).copy_(packed_.narrow(0, first, count));
  } else if (to.scalar_type() == at::kFloat) {
    cpu::unpack(int4().from(first), count, to.mutable_data_ptr<float>());
  } else {
    cpu::unpack(int4().from(first), count, static_cast<cpu::bfloat16*>(to.mutable_data_ptr()));
  }
}

/// x float32 [rows, in]. Writes the products into `to` float32 [rows, out], or adds them to it.
void quantized_matrix::few(const at::Tensor& x, at::Tensor& to, bool add) const {
  const auto count = x.size(0);
  const auto dense = x.contiguous();
  std::vector<float> narrow(static_cast<std::size_t>(count * in_));
  cpu::round_to_bfloat16(dense.const_data_ptr<float>(), narrow.data(), count * in_);
  const cpu::fixed_rows rows(narrow.data(), count, in_,
                             format_ == quantization::int4 ? cpu::fixed_rows::layout::with_bytes
                                                           : cpu::fixed_rows::layout::numbers);
  auto own = add ? at::empty_like(to) : at::Tensor();
  auto *into = to.mutable_data_ptr<float>(), *products = add ? own.mutable_data_ptr<float>() : into;
  cpu::parallel_for(0, out_, numbers_per_thread / in_ + 1, [&](std::int64_t begin, std::int64_t end) {
    if (format_ == quantization::int8)
      cpu::product(rows, packed_.const_data_ptr<std::int8_t>() + begin * in_, end - begin, products + begin, out_);
    else
      cpu::product(rows, int4().from(begin), end - begin, products + begin, out_);
    for (auto at = begin; at < count * out_; at += out_) {
      if (format_ == quantization::int8)
        cpu::multiply(products + at, scales_.const_data_ptr<float>() + begin, end - begin);
      if (add) cpu::add(into + at, products + at, end - begin);
    }
  });
}

at::Tensor quantized_matrix::few(const at::Tensor& x) const {
  auto y = at::empty({x.size(0), out_}, at::kFloat);
  few(x, y, false);
  return y;
}

/// x bfloat16 [rows, in].
at::Tensor quantized_matrix::many(const at::Tensor& narrow) const {
  const auto x = cpu::multiplies_bfloat16() ? narrow : narrow.to(at::kFloat);
  const auto height = std::clamp<std::int64_t>(panel_numbers / in_, 16, out_);
  auto panel = at::empty({height, in_}, x.options()), y = at::empty({x.size(0), out_}, x.options());
  for (std::int64_t first = 0; first < out_; first += height) {
    const auto count = std::min(height, out_ - first);
    unpack(first, count, panel);
    auto part = y.narrow(1, first, count);
    at::mm_out(part, x, panel.narrow(0, 0, count).t());
  }
  y = y.to(at::kFloat);
  return format_ == quantization::int8 ? y.mul_(scales_) : y;
}

at::Tensor quantized_matrix::precise_product(const at::Tensor& x) const {
  return few(x.to(at::kFloat));
}

at::Tensor quantized_matrix::product(const at::Tensor& x) const {
  if (x.is_cpu() && x.size(0) <= few_rows) return few(x.to(at::kFloat)).to(x.scalar_type());
  const auto narrow = x.to(at::kBFloat16).contiguous();
  if (x.is_cpu()) return many(narrow).to(x.scalar_type());
  return at::_weight_int4pack_mm(narrow, packed_, group_, scales_).narrow(1, 0, out_).to(x.scalar_type());
}

void quantized_matrix::add_product(at::Tensor& to, const at::Tensor& x) const {
  if (to.is_cpu() && to.scalar_type() == at::kFloat && to.is_contiguous() && x.size(0) <= few_rows)
    few(x.to(at::kFloat), to, true);
  else
    to.add_(product(x));
}

} // namespace parley::inference::llm
