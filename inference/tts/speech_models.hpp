#pragma once

#include "config/settings.hpp"
#include "inference/formats/checkpoint.hpp"
#include "inference/quirks.hpp"
#include "inference/speech/speech_config.hpp"
#include "inference/tts/embeddings.hpp"
#include "inference/tts/llama.hpp"
#include "inference/vocoder/token2wav.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace parley::inference::speech {

/// The talker's models, loaded once for all sessions.
struct speech_models {
  tts_config config;
  std::unique_ptr<const tts_embeddings> embeddings;
  std::unique_ptr<const tts_llama> tokens;
  std::unique_ptr<const token2wav> sound;

  /// From a model folder: `config.json`, the tensors "tts.*" and `assets/token2wav`. `noise_seed` determines the noise
  /// tables. Throws std::runtime_error naming the file that is missing or wrong.
  static speech_models load(const checkpoint& from, std::uint64_t noise_seed, quirks how = {},
                            at::Device device = at::kCPU, config::speech_dtype dtype = config::speech_dtype::float32);

  /// What a model folder lacks for `load`, in words; none = nothing is missing.
  static std::optional<std::string> missing(const checkpoint& from);
};

} // namespace parley::inference::speech
