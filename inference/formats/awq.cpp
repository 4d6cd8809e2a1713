#include "inference/formats/awq.hpp"

#include <ATen/ATen.h>

#include <stdexcept>

namespace parley::inference {

namespace {

constexpr std::int64_t per_word = 8, bits = 4;

/// A quarter of the bit position of each of eight neighbouring outputs: they are packed in the order 0 2 4 6 1 3 5 7.
constexpr std::int64_t place_of[per_word] = {0, 4, 1, 5, 2, 6, 3, 7};

[[noreturn]] void refuse(const char* what) {
  throw std::runtime_error(std::string("AWQ: ") + what);
}

} // namespace

void check_awq(const awq_matrix& stored) {
  const auto& [numbers, zeros, scales] = stored;
  if (numbers.scalar_type() != at::kInt || zeros.scalar_type() != at::kInt) refuse("qweight and qzeros must be int32");
  if (!scales.is_floating_point()) refuse("scales must be floats");
  if (numbers.dim() != 2 || zeros.dim() != 2 || scales.dim() != 2)
    refuse("qweight, qzeros and scales must be matrices");
  const auto in = numbers.size(0), words = numbers.size(1), groups = scales.size(0);
  if (zeros.size(0) != groups || zeros.size(1) != words || scales.size(1) != words * per_word)
    refuse("the shapes of qweight, qzeros and scales do not fit each other");
  if (groups < 1 || in % groups != 0) refuse("the inputs are not cut into equal groups");
}

at::Tensor unpack_awq(const at::Tensor& packed) {
  std::vector<at::Tensor> parts;
  for (auto place : place_of) parts.push_back(packed.bitwise_right_shift(place * bits).bitwise_and(15).to(at::kByte));
  return at::stack(parts, -1).view({packed.size(0), packed.size(1) * per_word});
}

at::Tensor matrix_of(const awq_matrix& stored, at::ScalarType dtype) {
  check_awq(stored);
  const auto groups = stored.scales.size(0), out = stored.scales.size(1), in = stored.numbers.size(0);
  const auto numbers = unpack_awq(stored.numbers).view({groups, in / groups, out}).to(at::kFloat);
  const auto zeros = unpack_awq(stored.zeros).unsqueeze(1).to(at::kFloat);
  return ((numbers - zeros) * stored.scales.unsqueeze(1).to(at::kFloat)).view({in, out}).t().to(dtype).contiguous();
}

bool is_awq_name(std::string_view name) {
  return name.starts_with("llm.model.layers.") && name.ends_with("_proj.weight");
}

} // namespace parley::inference
