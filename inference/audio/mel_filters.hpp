#pragma once

#include <vector>

namespace parley::inference::audio {

/// Triangular filters with Slaney scale and norm for 0..8000 Hz (docs/model/thinker.md 3.1), [n_fft / 2 + 1][bins],
/// computed in float64. `rate` in Hz.
std::vector<double> slaney_filters(int n_fft, int bins, int rate = 16000);

} // namespace parley::inference::audio
