#pragma once

#include "inference/formats/safetensors.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace parley::inference::verify {

/// What a golden file holds of an output: all its values under its name, or every n-th of them, counted row by row,
/// under `<name>.every<n>of<count>`.
struct golden_values {
  at::Tensor values;      ///< in the recorded shape, or [kept] when `every` > 1
  std::int64_t every = 1; ///< the first value is the tensor's first
  std::int64_t count = 0; ///< values of the whole tensor
};

/// Nullopt when the file has neither; throws std::runtime_error when what it has is no such tensor.
std::optional<golden_values> find_golden(const safetensors_file& file, const std::string& name);

inline bool has_golden(const safetensors_file& file, const std::string& name) {
  return find_golden(file, name).has_value();
}

/// Throws std::runtime_error naming file and tensor when there is none.
golden_values golden_of(const safetensors_file& file, const std::string& name);

} // namespace parley::inference::verify
