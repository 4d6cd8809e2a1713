#include "inference/speech/features.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace parley::inference::speech {
namespace {

/// Linear below 1 kHz, logarithmic above.
double slaney_mel(double hz) {
  constexpr double step = 200.0 / 3, bend = 1000;
  return hz < bend ? hz / step : bend / step + std::log(hz / bend) * 27 / std::log(6.4);
}

double slaney_hz(double mel) {
  constexpr double step = 200.0 / 3, bend = 1000;
  return mel < bend / step ? mel * step : bend * std::exp((mel - bend / step) * std::log(6.4) / 27);
}

double htk_mel(double hz) {
  return 1127 * std::log1p(hz / 700);
}

at::Tensor from_doubles(const std::vector<double>& values, at::IntArrayRef shape) {
  return at::tensor(values, at::kDouble).reshape(shape).to(at::kFloat);
}

/// Kaldi's triangles: equal steps of HTK mel, slopes straight in mel. [bins, fft / 2 + 1], float32 arithmetic.
const at::Tensor& kaldi_filters() {
  static const auto made = [] {
    constexpr int bins = 80, columns = 257;
    constexpr double lowest = 20, highest = voice_rate / 2.0, width = static_cast<double>(voice_rate) / 512;
    const auto low = htk_mel(lowest), step = (htk_mel(highest) - low) / (bins + 1);
    std::vector<double> values(bins * columns);
    for (int bin = 0; bin < bins; ++bin)
      for (int column = 0; column + 1 < columns; ++column) { // the Nyquist column stays 0
        const auto mel = htk_mel(width * column), left = low + bin * step;
        const auto rise = (mel - left) / step, fall = (left + 2 * step - mel) / step;
        values[static_cast<std::size_t>(bin * columns + column)] = std::max(0.0, std::min(rise, fall));
      }
    return from_doubles(values, {bins, columns});
  }();
  return made;
}

} // namespace

at::Tensor slaney_mel_filters(int rate, int fft, int mels, double lowest, double highest) {
  const int columns = fft / 2 + 1;
  std::vector<double> edges;
  for (int i = 0; i < mels + 2; ++i)
    edges.push_back(slaney_hz(slaney_mel(lowest) + (slaney_mel(highest) - slaney_mel(lowest)) * i / (mels + 1)));
  std::vector<double> values;
  for (int mel = 0; mel < mels; ++mel) {
    const auto left = edges[mel], top = edges[mel + 1], right = edges[mel + 2];
    for (int column = 0; column < columns; ++column) {
      const auto hz = static_cast<double>(column) * rate / fft;
      const auto height = std::max(0.0, std::min((hz - left) / (top - left), (right - hz) / (right - top)));
      values.push_back(height * 2 / (right - left));
    }
  }
  return from_doubles(values, {mels, columns});
}

at::Tensor tokenizer_log_mel(const at::Tensor& samples) {
  constexpr int fft = 400, hop = 160, mels = 128;
  static const auto filters = slaney_mel_filters(voice_rate, fft, mels, 0, voice_rate / 2.0);
  const auto spectrum = at::stft(samples.unsqueeze(0), fft, hop, fft, at::hann_window(fft, samples.options()), true,
                                 "reflect", false, true, true);
  const auto power = spectrum.squeeze(0).slice(1, 0, -1).abs().square();
  const auto logs = at::log10(at::matmul(filters.to(samples.device()), power).clamp_min(1e-10));
  return (at::maximum(logs, logs.max() - 8) + 4) / 4;
}

at::Tensor speaker_fbank(const at::Tensor& samples) {
  constexpr std::int64_t frame = 400, hop = 160, fft = 512;
  constexpr double pre_emphasis = 0.97;
  if (samples.size(0) < frame) throw std::invalid_argument("filter bank: less than one frame of sound");
  static const auto window = at::hann_window(frame, false, at::kFloat).pow(0.85); // Povey
  auto frames = samples.unfold(0, frame, hop);
  frames = frames - frames.mean(1, true);
  const auto previous = at::cat({frames.narrow(1, 0, 1), frames.narrow(1, 0, frame - 1)}, 1);
  frames = (frames - pre_emphasis * previous) * window.to(samples.device());
  const auto power = at::fft_rfft(frames, fft, 1).abs().square();
  const auto energies = at::matmul(power, kaldi_filters().to(samples.device()).t());
  return energies.clamp_min(1.1920928955078125e-07).log();
}

at::Tensor prompt_log_mel(const at::Tensor& samples) {
  constexpr int fft = 1920, hop = 480, mels = 80;
  constexpr std::int64_t edge = (fft - hop) / 2;
  static const auto filters = slaney_mel_filters(mel_rate, fft, mels, 0, 8000);
  const auto padded = at::reflection_pad1d(samples.unsqueeze(0), {edge, edge});
  const auto spectrum = at::view_as_real(
      at::stft(padded, fft, hop, fft, at::hann_window(fft, samples.options()), false, "reflect", false, true, true));
  const auto magnitude = at::sqrt(spectrum.square().sum(-1) + 1e-9).squeeze(0);
  return at::matmul(filters.to(samples.device()), magnitude).clamp_min(1e-5).log().t().contiguous();
}

} // namespace parley::inference::speech
