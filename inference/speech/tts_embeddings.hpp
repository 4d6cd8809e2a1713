#pragma once

#include "inference/checkpoint.hpp"
#include "inference/speech/layers.hpp"
#include "inference/speech/speech_config.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace parley::inference::speech {

/// The tensors below "tts." that are read, as float32. Throws std::runtime_error when there are none.
tensor_map read_tts_weights(const checkpoint& from, at::Device device = at::kCPU);

/// What the TTS language model is fed: text tokens merged with the thinker's states, marks, and speech tokens
/// (TALKER.md 3).
class tts_embeddings {
public:
  /// `weights`: the tensors below "tts.", float32.
  tts_embeddings(const tensor_map& weights, const tts_config& config);

  /// tokens [n] int64; hidden [n, llm width]: the thinker's state, after its final norm, at the position where each token
  /// was fed. -> [n, width]
  at::Tensor condition(const at::Tensor& tokens, const at::Tensor& hidden, bool normalise) const;

  /// A duplex unit's condition: always normalised, one audio_bos row behind; no tokens give that row alone.
  at::Tensor duplex_condition(const at::Tensor& tokens, const at::Tensor& hidden) const;

  /// The projected states alone, [n, width].
  at::Tensor project(const at::Tensor& hidden) const;

  at::Tensor text(std::int64_t token) const { return text_.narrow(0, token, 1); } ///< [1, width]
  const at::Tensor& audio_bos() const { return audio_bos_; }
  const at::Tensor& text_eos() const { return text_eos_; }

  /// Speech tokens -> [n, width]
  at::Tensor codes(std::span<const std::int64_t> tokens) const;

private:
  at::Tensor text_, code_, audio_bos_, text_eos_;
  linear project_first_, project_second_;
};

} // namespace parley::inference::speech
