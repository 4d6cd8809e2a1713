#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace parley::inference {

struct init_options {
  std::uint64_t shard_bytes = 5'000'000'000; ///< the size at which Hugging Face splits large checkpoints
  std::filesystem::path tokenizer = {};      ///< folder whose vocabulary is used; empty = bytes, followed by filler
};

/// Writes a folder with the files of the published MiniCPM-o 4.5 and random weights: configuration, tokenizer in both
/// forms, bfloat16 safetensors sharded like the real ones, and `assets` with the voice's networks and two recordings.
/// Weights are written as they are drawn, so any size needs little memory. The same preset and seed give the same
/// bytes. Presets: "tiny", "mid", "minicpm-o-4.5"; only the last one has networks of the published size in `assets`.
/// `out` must be missing or empty. Throws std::invalid_argument for an unknown preset, std::runtime_error for disk
/// errors.
void init_model(std::string_view preset, std::uint64_t seed, const std::filesystem::path& out,
                const init_options& options = {});

} // namespace parley::inference
