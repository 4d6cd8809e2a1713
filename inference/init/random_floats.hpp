#pragma once

#include "inference/init/random_bfloat16.hpp"
#include "inference/init/tensor_plan.hpp"

#include <bit>
#include <cstdint>
#include <vector>

namespace parley::inference::init {

/// The numbers of a planned tensor as float32, widened from bfloat16.
inline std::vector<float> random_floats(const planned_tensor& tensor, std::uint64_t seed) {
  std::vector<std::uint16_t> narrow(tensor.values());
  random_bfloat16(seed, tensor.name, tensor.mean, tensor.deviation).fill(narrow);
  std::vector<float> result;
  result.reserve(narrow.size());
  for (auto bits : narrow) result.push_back(std::bit_cast<float>(std::uint32_t{bits} << 16));
  return result;
}

} // namespace parley::inference::init
