#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace parley::inference {

inline constexpr std::uint64_t default_shard_bytes = 5'000'000'000; ///< as Hugging Face cuts large checkpoints

/// Writes a checkpoint with random weights in the layout of MiniCPM-o 4.5: configuration, a byte tokenizer with filler
/// up to the preset's vocabulary, and bfloat16 safetensors, sharded above `shard_bytes` as the real one is. Weights go
/// to disk as they are drawn, so any size needs little memory; the same preset and seed give the same bytes. Presets:
/// "tiny", "mid", "minicpm-o-4.5". Holds the thinker and the speech-token model (`tts.`); the vocoder's folder
/// `assets/token2wav` is not written, so an engine on such a checkpoint answers with text alone. `out` must be missing
/// or empty. Throws std::invalid_argument for an unknown preset, std::runtime_error for the disk.
void init_model(std::string_view preset, std::uint64_t seed, const std::filesystem::path& out,
                std::uint64_t shard_bytes = default_shard_bytes);

} // namespace parley::inference
