#include "inference/audio/mel_filters.hpp"

#include <algorithm>
#include <cmath>

namespace parley::inference::audio {

namespace {

// Slaney's mel scale: linear up to 1 kHz, logarithmic above.
constexpr double linear_hz_per_mel = 200.0 / 3.0;
constexpr double break_hz = 1000.0;
constexpr double break_mel = break_hz / linear_hz_per_mel;
const double log_step = std::log(6.4) / 27.0;

double mel_of(double hz) {
  return hz < break_hz ? hz / linear_hz_per_mel : break_mel + std::log(hz / break_hz) / log_step;
}

double hz_of(double mel) {
  return mel < break_mel ? mel * linear_hz_per_mel : break_hz * std::exp(log_step * (mel - break_mel));
}

} // namespace

std::vector<double> slaney_filters(int n_fft, int bins, int rate) {
  auto frequencies = static_cast<std::size_t>(n_fft) / 2 + 1;
  auto count = static_cast<std::size_t>(bins);
  constexpr double top = 8000;
  std::vector<double> corner(count + 2);
  for (std::size_t i = 0; i < corner.size(); ++i)
    corner[i] = hz_of(mel_of(top) * static_cast<double>(i) / static_cast<double>(count + 1));
  std::vector<double> result(frequencies * count);
  for (std::size_t f = 0; f < frequencies; ++f) {
    double hz = rate / 2.0 * static_cast<double>(f) / static_cast<double>(frequencies - 1);
    for (std::size_t m = 0; m < count; ++m) {
      double up = (hz - corner[m]) / (corner[m + 1] - corner[m]);
      double down = (corner[m + 2] - hz) / (corner[m + 2] - corner[m + 1]);
      result[f * count + m] = std::max(0.0, std::min(up, down)) * 2.0 / (corner[m + 2] - corner[m]);
    }
  }
  return result;
}

} // namespace parley::inference::audio
