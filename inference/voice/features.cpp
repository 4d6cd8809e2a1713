#include "inference/voice/features.hpp"

#include "inference/audio/mel_filters.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace parley::inference::speech {
namespace {

double htk_mel(double hz) {
  return 1127 * std::log1p(hz / 700);
}

/// [bins, fft / 2 + 1], 0 to 8000 Hz
at::Tensor slaney_filters(int rate, int fft, int bins) {
  const auto values = audio::slaney_filters(fft, bins, rate);
  return at::tensor(values, at::kDouble).view({fft / 2 + 1, bins}).t().to(at::kFloat).contiguous();
}

at::Tensor from_doubles(const std::vector<double>& values, at::IntArrayRef shape) {
  return at::tensor(values, at::kDouble).reshape(shape).to(at::kFloat);
}

/// Kaldi's triangular filters: equally spaced in HTK mel, with slopes linear in mel. [bins, fft / 2 + 1], in float32
/// arithmetic.
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

at::Tensor tokenizer_log_mel(const at::Tensor& samples) {
  constexpr int fft = 400, hop = 160, mels = 128;
  static const auto filters = slaney_filters(voice_rate, fft, mels);
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
  static const auto window = at::hann_window(frame, false, at::kFloat).pow(0.85); // Povey window
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
  static const auto filters = slaney_filters(mel_rate, fft, mels);
  const auto padded = at::reflection_pad1d(samples.unsqueeze(0), {edge, edge});
  const auto spectrum = at::view_as_real(
      at::stft(padded, fft, hop, fft, at::hann_window(fft, samples.options()), false, "reflect", false, true, true));
  const auto magnitude = at::sqrt(spectrum.square().sum(-1) + 1e-9).squeeze(0);
  return at::matmul(filters.to(samples.device()), magnitude).clamp_min(1e-5).log().t().contiguous();
}

} // namespace parley::inference::speech
