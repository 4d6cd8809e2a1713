#pragma once

#include "inference/vocoder/flow.hpp"
#include "inference/voice/reference_voice.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace parley::inference::speech {

/// Everything that depends only on a reference voice. Computed once, then only read: every stream with this voice
/// begins as a copy of `prompt`, sharing its tensors.
struct voice {
  voice_features heard;
  at::Tensor speaker; ///< [bins], in the form and dtype that the flow model expects
  flow::state prompt;

  std::int64_t prompt_rows() const { return heard.mel.size(0); }
};

} // namespace parley::inference::speech
