#include "inference/audio/mel.hpp"

#include "inference/audio/mel_filters.hpp"
#include "inference/audio/mel_windows.hpp"
#include "inference/kernels/parallel.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

namespace parley::inference::audio {

namespace {

constexpr std::int64_t piece_samples = 30 * sample_rate;

/// mel power -> log10 with a floor, optionally clipped relative to `peak`, scaled as in training.
at::Tensor finish(at::Tensor power, mel_clip level, float peak) {
  auto logs = power.clamp_min_(1e-10).log10_();
  if (level == mel_clip::dynamic)
    logs.clamp_min_(at::scalar_tensor(std::max(peak, 1e-10F)).log10().item<float>() - 8.0F);
  return logs.add_(4.0).div_(4.0);
}

} // namespace

mel_extractor::mel_extractor(int bins, at::Device device) : bins_(bins) {
  // float32 from the start, like the reference: a window rounded from float64 moves weak bins by 5e-5.
  window_ = at::hann_window(mel_window_samples, at::TensorOptions().dtype(at::kFloat)).to(device);
  auto filters = slaney_filters(mel_window_samples, bins);
  filters_ = at::from_blob(filters.data(), {mel_window_samples / 2 + 1, bins}, at::kDouble).to(at::kFloat).to(device);
}

at::Tensor mel_extractor::mel_power(const std::vector<float>& windows) const {
  auto count = static_cast<std::int64_t>(windows.size()) / mel_window_samples;
  auto frames = at::from_blob(const_cast<float*>(windows.data()), {count, mel_window_samples}, at::kFloat);
  auto spectrum = at::view_as_real(at::fft_rfft(frames.to(window_.device()) * window_)).square().sum(-1);
  return at::matmul(spectrum, filters_).cpu();
}

std::vector<std::vector<at::Tensor>> mel_extractor::offline(std::span<const std::span<const float>> clips,
                                                            mel_clip level) const {
  struct piece {
    std::int64_t samples;
    std::int64_t computed; // frames that overlap with the sound; all others are silent
  };
  std::vector<std::vector<piece>> pieces(clips.size());
  std::vector<float> windows;
  for (std::size_t i = 0; i < clips.size(); ++i) {
    for (std::size_t at = 0; at < clips[i].size(); at += piece_samples) {
      auto samples = clips[i].subspan(at, std::min<std::size_t>(piece_samples, clips[i].size() - at));
      auto count = static_cast<std::int64_t>(samples.size());
      auto computed = std::min(piece_samples, count + mel_window_samples / 2 + mel_hop_samples - 1) / mel_hop_samples;
      for (std::int64_t frame = 0; frame < computed; ++frame)
        append_window(windows, samples, frame * mel_hop_samples - mel_window_samples / 2, piece_samples);
      pieces[i].push_back({count, computed});
    }
  }
  std::vector<std::vector<at::Tensor>> result(clips.size());
  if (windows.empty()) return result;
  auto power = mel_power(windows);
  std::int64_t row = 0;
  for (std::size_t i = 0; i < clips.size(); ++i)
    for (auto [samples, computed] : pieces[i]) {
      auto rows = power.narrow(0, row, computed);
      row += computed;
      auto kept = (samples + mel_hop_samples - 1) / mel_hop_samples;
      result[i].push_back(finish(rows.narrow(0, 0, kept).clone(), level, rows.max().item<float>()));
    }
  return result;
}

std::vector<at::Tensor> mel_extractor::offline(std::span<const float> clip, mel_clip level) const {
  return std::move(offline(std::span(&clip, 1), level).front());
}

std::vector<mel_extractor::stream_output> mel_extractor::stream(std::span<const stream_input> inputs) const {
  constexpr std::int64_t streams_per_thread = 2;
  if (!window_.is_cpu()) return stream_some(inputs);
  std::vector<stream_output> result(inputs.size());
  cpu::parallel_for(0, std::ssize(inputs), streams_per_thread, [&](std::int64_t begin, std::int64_t end) {
    const c10::InferenceMode guard;
    const auto first = static_cast<std::size_t>(begin), count = static_cast<std::size_t>(end - begin);
    std::ranges::move(stream_some(inputs.subspan(first, count)), result.begin() + begin);
  });
  return result;
}

std::vector<mel_extractor::stream_output> mel_extractor::stream_some(std::span<const stream_input> inputs) const {
  std::vector<float> windows;
  std::vector<window_plan> plans;
  plans.reserve(inputs.size());
  for (const auto& input : inputs) plans.push_back(plan_windows(*input.stream, input.samples, windows));

  at::Tensor power;
  if (!windows.empty()) power = mel_power(windows).contiguous();
  const float* rows = power.defined() ? power.const_data_ptr<float>() : nullptr;
  std::vector<stream_output> result;
  result.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto chunk = take_power(*inputs[i].stream, plans[i], rows, bins_);
    rows += plans[i].windows() * bins_;
    stream_output out{{}, chunk.info};
    if (chunk.info.emitted_frames > 0) {
      auto mel = at::from_blob(chunk.power.data(), {chunk.info.emitted_frames, bins_}, at::kFloat).clone();
      out.mel = finish(std::move(mel), chunk.dynamic ? mel_clip::dynamic : mel_clip::floor, chunk.peak);
    }
    result.push_back(std::move(out));
  }
  return result;
}

} // namespace parley::inference::audio
