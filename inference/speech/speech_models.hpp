#pragma once

#include "inference/checkpoint.hpp"
#include "inference/quirks.hpp"
#include "inference/speech/speech_config.hpp"
#include "inference/speech/token2wav.hpp"
#include "inference/speech/tts_embeddings.hpp"
#include "inference/speech/tts_llama.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace parley::inference::speech {

/// The models that speak, loaded once for all sessions.
struct speech_models {
  tts_config config;
  std::unique_ptr<const tts_embeddings> embeddings;
  std::unique_ptr<const tts_llama> tokens;
  std::unique_ptr<const token2wav> sound;

  /// Of a model folder: `config.json`, the tensors "tts.*" and `assets/token2wav`. `noise_seed` fixes the noise tables.
  /// Throws std::runtime_error naming the file that is missing or wrong.
  static speech_models load(const checkpoint& from, std::uint64_t noise_seed, quirks how = {},
                            at::Device device = at::kCPU);

  /// What a model folder lacks of what `load` needs, in words; none = nothing.
  static std::optional<std::string> missing(const checkpoint& from);
};

} // namespace parley::inference::speech
