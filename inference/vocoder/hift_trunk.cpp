#include "inference/vocoder/hift_trunk.hpp"

#include "inference/kernels/convolution.hpp"
#include "inference/kernels/parallel.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <utility>

namespace parley::inference::speech {
namespace {

padded_conv looking(padded_conv conv, reach looks, std::int64_t dilation = 1) {
  const auto span = (conv.kernel() - 1) * dilation;
  conv.dilation = dilation;
  conv.left = looks == reach::past_only ? span : span / 2;
  conv.right = looks == reach::past_only ? 0 : span / 2;
  return conv;
}

/// A convolution with exactly these channels.
padded_conv conv_of(const tensor_map& weights, const std::string& name, std::int64_t out, std::int64_t in) {
  weights.at(name + ".weight", {out, in, -1});
  if (weights.has(name + ".bias")) weights.at(name + ".bias", {out});
  return {weights, name};
}

} // namespace

snake_block::snake_block(const tensor_map& weights, const std::string& name, std::int64_t channels,
                         const std::vector<std::int64_t>& dilations, reach looks) {
  if (dilations.empty()) throw std::runtime_error(weights.origin() + ": " + name + " has no dilations");
  for (std::size_t i = 0; i < dilations.size(); ++i)
    for (const auto* half : {"1.", "2."}) {
      const auto at = half + std::to_string(i);
      const auto alpha = weights.at(name + ".activations" + at + ".alpha", {channels}).view({1, -1, 1});
      const auto dilation = *half == '1' ? dilations[i] : 1;
      const auto conv = looking(conv_of(weights, name + ".convs" + at, channels, channels), looks, dilation);
      if (conv.kernel() < 1 || conv.left + conv.right != (conv.kernel() - 1) * dilation)
        throw std::runtime_error(weights.origin() + ": " + name + ".convs" + at + " has a kernel without a middle");
      units_.push_back({alpha, 1.0 / (alpha + 1e-9), conv});
    }
}

at::Tensor snake_block::operator()(at::Tensor x) const {
  if (convolves_by_hand(x, units_.front().conv)) return run_on_cpu(x);
  for (std::size_t i = 0; i < units_.size(); i += 2) {
    auto y = x;
    for (auto j : {i, i + 1}) {
      const auto& unit = units_[j];
      y = unit.conv(y + unit.inverse * at::sin(y * unit.alpha).square_());
    }
    x = y + x;
  }
  return x;
}

at::Tensor snake_block::run_on_cpu(const at::Tensor& x) const {
  const auto batch = x.size(0), channels = x.size(1), length = x.size(2);
  std::int64_t most = 0;
  for (const auto& unit : units_) most = std::max(most, unit.conv.left + unit.conv.right);
  const auto stride = length + most;
  auto result = x.clone(at::MemoryFormat::Contiguous);
  auto* all = result.mutable_data_ptr<float>();
  cpu::parallel_for(0, batch, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> between(static_cast<std::size_t>(channels * length)),
        padded(static_cast<std::size_t>(channels * stride));
    for (auto n = begin; n < end; ++n) {
      const cpu::signal own{all + n * channels * length, length}, middle{between.data(), length};
      for (std::size_t i = 0; i < units_.size(); ++i) {
        const auto& [alpha, inverse, conv] = units_[i];
        const bool second = i % 2 == 1;
        for (std::int64_t c = 0; c < channels; ++c) {
          auto* row = padded.data() + c * stride;
          std::fill(row, row + conv.left, 0.0F);
          std::fill(row + conv.left + length, row + conv.left + length + conv.right, 0.0F);
        }
        cpu::snake(second ? middle.rows : own.rows, length, alpha.const_data_ptr<float>(),
                   inverse.const_data_ptr<float>(), channels, length, {padded.data() + conv.left, stride});
        const cpu::kernel by{conv.weight.const_data_ptr<float>(),
                             conv.bias.defined() ? conv.bias.const_data_ptr<float>() : nullptr,
                             channels,
                             channels,
                             conv.kernel(),
                             conv.dilation};
        cpu::convolve(padded.data(), stride, by, length, second ? own.rows : nullptr, length, second ? own : middle);
      }
    }
  });
  return result;
}

void snake_block::use_bfloat16() {
  for (auto& unit : units_) unit.conv.use_bfloat16();
}

std::int64_t snake_block::history() const {
  std::int64_t columns = 0;
  for (const auto& unit : units_) columns += unit.conv.left;
  return columns;
}

hift_trunk::hift_trunk(const tensor_map& weights, hift_config config, reach looks)
    : config_(std::move(config)), looks_(looks), source_mix_(weights, "m_source.l_linear") {
  const auto spectrum = config_.fft + 2;
  auto stride = config_.rate();
  auto channels = weights.at("conv_pre.weight", {-1, -1, -1}).size(0);
  for (std::size_t i = 0; i < config_.upsample_rates.size(); ++i) {
    const auto n = std::to_string(i);
    const auto rate = config_.upsample_rates[i];
    stride /= rate;
    const auto before =
        std::exchange(channels, weights.at("source_downs." + n + ".weight", {-1, spectrum, -1}).size(0));
    auto up = upsampling(weights, "ups." + n, channels, before);
    auto down = conv_of(weights, "source_downs." + n, channels, spectrum);
    down.stride = stride;
    down.left = looks_ == reach::past_only ? stride - 1 : stride / 2;
    down.right = looks_ == reach::past_only ? 0 : stride / 2;
    stage made{rate, up, down, {weights, "source_resblocks." + n, channels, config_.source_dilations[i], looks_}, {}};
    for (std::size_t j = 0; j < config_.dilations.size(); ++j)
      made.blocks.emplace_back(weights, "resblocks." + std::to_string(i * config_.dilations.size() + j), channels,
                               config_.dilations[j], looks_);
    stages_.push_back(std::move(made));
  }
  conv_post_ = looking(conv_of(weights, "conv_post", spectrum, channels), looks_);
  prepare_transform();
}

padded_conv hift_trunk::upsampling(const tensor_map& weights, const std::string& name, std::int64_t out,
                                   std::int64_t in) const {
  if (looks_ == reach::both_sides) {
    weights.at(name + ".weight", {in, out, -1});
    return {weights, name};
  }
  auto up = conv_of(weights, name, out, in);
  up.left = up.kernel() - 1;
  return up;
}

void hift_trunk::prepare_transform() {
  window_ = at::hann_window(config_.fft, true, conv_post_.weight.options());
  const auto angle = at::outer(at::arange(config_.fft / 2 + 1, at::kDouble), at::arange(config_.fft, at::kDouble)) *
                     (2 * std::numbers::pi / static_cast<double>(config_.fft));
  transform_ = (at::cat({angle.cos(), angle.sin().neg()}) * window_.cpu()).to(window_.options());
  if (!window_.is_cpu()) {
    // Each part but the first and the last stands for two of the whole spectrum.
    auto parts = at::full({config_.fft / 2 + 1, 1}, 2.0, at::kDouble);
    parts[0] = parts[-1] = 1;
    const auto waves = at::cat({angle.cos() * parts, angle.sin().neg() * parts}) / static_cast<double>(config_.fft);
    back_ = (waves * window_.cpu()).unsqueeze(1).to(window_.options());
    overlap_ = window_.square().view({1, 1, -1});
  } else {
    const auto* window = window_.const_data_ptr<float>();
    to_samples_.emplace(std::vector<float>(window, window + config_.fft), config_.fft_hop);
  }
}

void hift_trunk::use_bfloat16() {
  for (auto& stage : stages_) {
    if (looks_ == reach::past_only) stage.up.use_bfloat16();
    stage.source_block.use_bfloat16();
    for (auto& block : stage.blocks) block.use_bfloat16();
  }
}

at::Tensor hift_trunk::source_spectrum(const at::Tensor& source) const {
  const auto half = config_.fft / 2;
  const auto windows = at::reflection_pad1d(source, {half, half}).unfold(1, config_.fft, config_.fft_hop);
  return at::matmul(transform_, windows.transpose(1, 2));
}

at::Tensor hift_trunk::decode(at::Tensor x, const at::Tensor& spectrum, const at::Tensor& columns) const {
  for (const auto& stage : stages_) {
    x = at::leaky_relu(x, config_.leaky_slope);
    if (looks_ == reach::past_only)
      x = stage.up(x.repeat_interleave(stage.rate, 2));
    else
      x = at::conv_transpose1d(x, stage.up.weight, stage.up.bias, {stage.rate}, {(stage.up.kernel() - stage.rate) / 2});
    if (&stage == &stages_.back()) x = at::reflection_pad1d(x, {1, 0});
    x = x + stage.source_block(stage.source_down(spectrum));
    at::Tensor sum;
    for (const auto& block : stage.blocks) sum = sum.defined() ? sum.add_(block(x)) : block(x);
    x = sum / static_cast<double>(stage.blocks.size());
  }
  x = conv_post_(at::leaky_relu(x));
  if (to_samples_) {
    const auto width = x.size(2), count = (width - 1) * config_.fft_hop;
    auto samples = at::empty({x.size(0), count}, x.options());
    auto* to = samples.mutable_data_ptr<float>();
    cpu::parallel_for(0, x.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto n = begin; n < end; ++n)
        to_samples_->samples(x.const_data_ptr<float>() + n * x.stride(0), width, width,
                             static_cast<float>(config_.limit), to + n * count);
    });
    return samples;
  }
  const auto bins = config_.fft / 2 + 1;
  const auto magnitude = at::exp(x.narrow(1, 0, bins)).clamp_max_(1e2);
  const auto phase = at::sin(x.narrow(1, bins, bins));
  return to_samples_on_device(at::cat({magnitude * at::cos(phase), magnitude * at::sin(phase)}, 1), columns);
}

/// The inverse transform of each column, added where they overlap, by the sum of the squared windows there: what istft
/// does, without its look at the numbers, for which the host would wait, and without a plan of cuFFT.
at::Tensor hift_trunk::to_samples_on_device(at::Tensor spectrum, const at::Tensor& columns) const {
  const auto width = spectrum.size(2);
  auto windows = at::ones({1, 1, width}, spectrum.options());
  if (columns.defined()) {
    windows = (at::arange(width, columns.options()) < columns.view({-1, 1, 1})).to(spectrum.scalar_type());
    spectrum = spectrum * windows;
  }
  auto inside = [&](const at::Tensor& x, const at::Tensor& waves) {
    return at::conv_transpose1d(x, waves, {}, {config_.fft_hop})
        .narrow(2, config_.fft / 2, (width - 1) * config_.fft_hop);
  };
  const auto sum = inside(spectrum, back_), weight = inside(windows, overlap_);
  return (sum / weight).squeeze(1).clamp_(-config_.limit, config_.limit);
}

at::Tensor hift_trunk::mix_noise(const at::Tensor& noise) const {
  return at::matmul(noise, noise_mix());
}

at::Tensor hift_trunk::excite(const at::Tensor& sines, const at::Tensor& f0, const at::Tensor& mixed_noise) const {
  const auto voiced = (f0 > config_.voiced_threshold).to(at::kFloat);
  const auto gain = voiced * config_.noise_amplitude + (1 - voiced) * config_.sine_amplitude / 3;
  const auto steady = source_mix_(sines * (voiced * config_.sine_amplitude).unsqueeze(-1)); // [1, frames, 1]
  return at::addcmul(steady, gain.unsqueeze(-1), mixed_noise).tanh_().flatten(1);
}

at::Tensor hift_trunk::mix_source(const at::Tensor& sines, const at::Tensor& noise, const at::Tensor& f0) const {
  const auto voiced = (f0 > config_.voiced_threshold).to(at::kFloat);
  const auto noise_gain = voiced * config_.noise_amplitude + (1 - voiced) * config_.sine_amplitude / 3;
  if (noise.dim() == 2) {
    const auto steady = source_mix_(sines * (voiced * config_.sine_amplitude)).squeeze(-1);
    return at::addcmul(steady, noise_gain.squeeze(-1), noise).tanh_();
  }
  const auto excitation = sines * config_.sine_amplitude * voiced + noise_gain * noise;
  return at::tanh(source_mix_(excitation)).squeeze(-1);
}

std::int64_t hift_trunk::history_frames() const {
  const auto rate = static_cast<double>(config_.rate());
  const auto transform = static_cast<double>(config_.fft) / static_cast<double>(config_.frame_samples());
  double history = 0, scale = 1;
  for (const auto& stage : stages_) {
    scale *= static_cast<double>(stage.rate);
    history += static_cast<double>(stage.up.kernel() - 1) / scale;
    const auto source = transform + static_cast<double>(stage.source_down.kernel() - 1) / rate +
                        static_cast<double>(stage.source_block.history()) / scale;
    std::int64_t widest = 0;
    for (const auto& block : stage.blocks) widest = std::max(widest, block.history());
    history = std::max(history, source) + static_cast<double>(widest) / scale;
  }
  history += static_cast<double>(conv_post_.left + 1) / rate + transform;
  constexpr double rounding = 1e-9; // the reference sums exact fractions
  return static_cast<std::int64_t>(std::ceil(history - rounding)) + 2;
}

} // namespace parley::inference::speech
