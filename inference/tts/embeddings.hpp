#pragma once

#include "inference/formats/checkpoint.hpp"
#include "inference/formats/tensor_map.hpp"
#include "inference/speech/speech_config.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <utility>

namespace parley::inference::speech {

/// The tensors below "tts." that the speech token model reads, as float32. Throws std::runtime_error if there are none.
tensor_map read_tts_weights(const checkpoint& from, at::Device device = at::kCPU);

/// The other inputs of the speech token model, besides the words' rows from `llm::tts_condition`: marks and speech
/// tokens (docs/model/talker.md 3).
class tts_embeddings {
public:
  /// codes float32 [speech tokens, width]; marks float32 [1, width].
  tts_embeddings(at::Tensor codes, at::Tensor audio_bos, at::Tensor text_eos)
      : codes_(std::move(codes)), audio_bos_(std::move(audio_bos)), text_eos_(std::move(text_eos)) {}

  /// Throws std::runtime_error if a tensor is missing or the configuration names a token that the table lacks.
  static tts_embeddings open(const checkpoint& from, const tts_config& config, at::Device device = at::kCPU);

  const at::Tensor& audio_bos() const { return audio_bos_; } ///< ends a group of words
  const at::Tensor& text_eos() const { return text_eos_; }   ///< precedes `audio_bos` after an answer's last words

  std::int64_t count() const { return codes_.size(0); } ///< of speech tokens, those that end included

  /// Speech tokens, each below `count()` -> float32 [n, width]
  at::Tensor codes(std::span<const std::int64_t> tokens) const;

  /// The same for int32 or int64 [n] on the device.
  at::Tensor codes(const at::Tensor& tokens) const { return codes_.index_select(0, tokens); }

private:
  at::Tensor codes_, audio_bos_, text_eos_;
};

} // namespace parley::inference::speech
