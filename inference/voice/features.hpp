#pragma once

#include <ATen/core/Tensor.h>

// The inputs of the voice's networks (docs/model/talker.md 6.1). Samples are mono in [-1, 1], float32 [n]; features are
// float32, on the samples' device.
namespace parley::inference::speech {

inline constexpr int voice_rate = 16000; ///< Hz; input of the tokenizer and the speaker network
inline constexpr int mel_rate = 24000;   ///< Hz; input of the flow model's mel

/// 16 kHz -> log mel of the speech tokenizer, [128, n / 160].
at::Tensor tokenizer_log_mel(const at::Tensor& samples);

/// 16 kHz, at least 400 samples → log filter bank energies for the speaker vector, [(n - 400) / 160 + 1, 80]. Throws
/// std::invalid_argument when there are fewer.
at::Tensor speaker_fbank(const at::Tensor& samples);

/// 24 kHz, more than 720 samples -> log mel of the flow model, [n / 480, 80].
at::Tensor prompt_log_mel(const at::Tensor& samples);

} // namespace parley::inference::speech
