#pragma once

#include "inference/init/tensor_plan.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace parley::inference::init {

/// Draws the tensors and writes them as bfloat16 safetensors: one `model.safetensors`, or shards of at most
/// `shard_bytes` of data with an index (a larger tensor gets its own shard). Throws std::runtime_error naming the file.
void write_tensors(const std::filesystem::path& folder, const std::vector<planned_tensor>& tensors, std::uint64_t seed,
                   std::uint64_t shard_bytes);

} // namespace parley::inference::init
