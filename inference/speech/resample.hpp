#pragma once

#include <ATen/core/Tensor.h>

namespace parley::inference::speech {

/// Windowed-sinc resampling with a Hann window, six zero crossings wide, cut off at 0.99 of the lower Nyquist rate:
/// torchaudio's default, with which the model was trained (docs/model/talker.md 6, item 2). samples float32 [channels,
/// n] or [n], rates in Hz; returns ceil(n * to / from) samples of each channel.
at::Tensor resample(const at::Tensor& samples, int from, int to);

} // namespace parley::inference::speech
