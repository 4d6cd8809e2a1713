#pragma once

#include "inference/formats/safetensors.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace parley::inference::verify {

/// What a golden file stores of an output: all its values under its name, or every n-th of them, counted row by row,
/// under `<name>.every<n>of<count>`.
struct golden_values {
  at::Tensor values;      ///< in the recorded shape, or [kept] when `every` > 1
  std::int64_t every = 1; ///< starting with the tensor's first value
  std::int64_t count = 0; ///< values in the whole tensor
};

/// Nullopt if the file has neither form; throws std::runtime_error if the stored tensor is invalid.
std::optional<golden_values> find_golden(const safetensors_file& file, const std::string& name);

inline bool has_golden(const safetensors_file& file, const std::string& name) {
  return find_golden(file, name).has_value();
}

/// Throws std::runtime_error naming file and tensor if it is missing.
golden_values golden_of(const safetensors_file& file, const std::string& name);

} // namespace parley::inference::verify
