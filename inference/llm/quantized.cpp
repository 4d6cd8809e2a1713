#include "inference/llm/quantized.hpp"

#include <ATen/ATen.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace parley::inference::llm {

namespace {

constexpr std::int64_t group = 32, least_out = 16, tiles = 2; // for int4

/// The middle of a group's sixteen steps; its value is the group's offset.
constexpr double middle = 8;

} // namespace

quantized_matrix::quantized_matrix(const at::Tensor& matrix, quantization format)
    : format_(format), out_(matrix.size(0)), group_(group) {
  const auto wide = matrix.to(at::kFloat);
  if (format == quantization::int8) {
    const auto scale = wide.abs().amax(1, true).div_(127).clamp_min_(1e-12);
    packed_ = wide.div(scale).round_().to(at::kChar).contiguous();
    scales_ = scale.squeeze(1).to(at::kBFloat16);
    return;
  }
  const auto in = matrix.size(1), padded = (out_ + least_out - 1) / least_out * least_out;
  if (in % group != 0)
    throw std::runtime_error("engine.quant: int4 needs rows of a multiple of 32 numbers, not " + std::to_string(in));
  const auto groups = at::constant_pad_nd(wide, {0, 0, 0, padded - out_}).view({padded, in / group, group});
  const auto lowest = groups.amin(-1, true);
  const auto scale = groups.amax(-1, true).sub_(lowest).div_(15).clamp_min_(1e-12);
  // The kernel rounds scales and offsets, so the steps are chosen for the rounded values.
  const auto used_scale = scale.to(at::kBFloat16).to(at::kFloat);
  const auto offset = (lowest + used_scale * middle).to(at::kBFloat16).to(at::kFloat);
  const auto steps =
      groups.sub(offset).div_(used_scale).add_(middle).round_().clamp_(0, 15).to(at::kInt).view({padded, in});
  pack(steps, used_scale.squeeze(-1), offset.squeeze(-1));
}

bool quantized_matrix::takes(std::int64_t group) {
  return group == 32 || group == 64 || group == 128 || group == 256;
}

quantized_matrix::quantized_matrix(std::span<const awq_matrix> stored)
    : format_(quantization::int4), out_(0), group_(0) {
  std::vector<at::Tensor> steps, scales, offsets;
  for (const auto& one : stored) {
    check_awq(one);
    const auto size = one.numbers.size(0) / one.scales.size(0);
    if (!takes(size) || (group_ != 0 && size != group_))
      throw std::runtime_error("engine.quant: int4 has no kernel for groups of " + std::to_string(size));
    group_ = size;
    const auto scale = one.scales.to(at::kFloat);
    steps.push_back(unpack_awq(one.numbers).t());
    scales.push_back(scale.t());
    offsets.push_back(((middle - unpack_awq(one.zeros).to(at::kFloat)) * scale).t());
    out_ += one.scales.size(1);
  }
  const auto padding = (out_ + least_out - 1) / least_out * least_out - out_;
  const auto padded = [&](const std::vector<at::Tensor>& parts) {
    return at::constant_pad_nd(at::cat(parts), {0, 0, 0, padding});
  };
  pack(padded(steps).to(at::kInt).contiguous(), padded(scales), padded(offsets));
}

/// steps int32 [padded out, in] of 0 to 15; scale and offset [padded out, groups]: a number is
/// (step - middle) * scale + offset.
void quantized_matrix::pack(const at::Tensor& steps, const at::Tensor& scale, const at::Tensor& offset) {
  if (steps.is_cpu()) {
    packed_ = at::_convert_weight_to_int4pack_for_cpu(steps, tiles);
  } else {
    const auto pairs = steps.view({steps.size(0), steps.size(1) / 2, 2}).to(at::kByte);
    packed_ =
        at::_convert_weight_to_int4pack(pairs.select(2, 0).bitwise_left_shift(4).bitwise_or(pairs.select(2, 1)), tiles);
  }
  scales_ = at::stack({scale, offset}, -1).transpose(0, 1).contiguous().to(at::kBFloat16);
}

at::Tensor quantized_matrix::product(const at::Tensor& x) const {
  const auto narrow = x.to(at::kBFloat16).contiguous();
  if (format_ == quantization::int8) return at::_weight_int8pack_mm(narrow, packed_, scales_).to(x.scalar_type());
  const auto y = x.is_cpu() ? at::_weight_int4pack_mm_for_cpu(narrow, packed_, group_, scales_)
                            : at::_weight_int4pack_mm(narrow, packed_, group_, scales_);
  return y.narrow(1, 0, out_).to(x.scalar_type());
}

} // namespace parley::inference::llm
