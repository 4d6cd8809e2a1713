#pragma once

#include "inference/formats/checkpoint.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace parley::inference::audio {

/// Number of LLM rows for `mel_frames` frames of features (docs/model/thinker.md 3.4); 0 for very few.
std::int64_t audio_tokens(std::int64_t mel_frames, int pool_step);

/// linear2(relu(linear1 x)), then the mean over `pool_step` frames (docs/model/thinker.md 3.4). Stateless after
/// construction.
class projector {
public:
  /// `w` is the view of "audio_projection_layer."; it determines dtype and device. Throws std::runtime_error naming a
  /// missing weight.
  projector(int pool_step, const weights& w);

  /// [frames, encoder hidden] per session → [tokens, LLM hidden] per session, at most `audio_tokens(mel_frames[i])`
  /// rows, in the weights' dtype.
  std::vector<at::Tensor> project(std::span<const at::Tensor> encoded, std::span<const std::int64_t> mel_frames) const;

private:
  int pool_step_;
  at::Tensor linear1_weight_, linear1_bias_, linear2_weight_, linear2_bias_;
};

} // namespace parley::inference::audio
