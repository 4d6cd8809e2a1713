#pragma once

#include <ATen/core/Tensor.h>

namespace parley::inference::speech {

/// Windowed-sinc resampling with a Hann window, six zero crossings wide, cut off at 0.99 of the lower Nyquist rate: the
/// default of torchaudio, with which the model was trained (TALKER.md 6, item 2). samples float32 [channels, n] or [n],
/// rates in Hz; gives ceil(n * to / from) samples of each channel.
at::Tensor resample(const at::Tensor& samples, int from, int to);

} // namespace parley::inference::speech
