#pragma once

#include "inference/init/tensor_plan.hpp"

#include <cstdint>
#include <filesystem>
#include <span>

namespace parley::inference::init {

/// Draws the tensors and writes them as torch.save writes a plain dict of float32 tensors, one at a time. Throws
/// std::runtime_error naming the file.
void write_state_dict(const std::filesystem::path& file, std::span<const planned_tensor> tensors, std::uint64_t seed);

} // namespace parley::inference::init
