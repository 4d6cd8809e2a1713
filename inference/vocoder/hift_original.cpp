#include "inference/vocoder/hift_original.hpp"

#include <ATen/ATen.h>

#include <numbers>

namespace parley::inference::speech {
namespace {

at::Tensor resample(const at::Tensor& x, double factor) {
  return at::upsample_linear1d(x, std::nullopt, false, at::ArrayRef<double>({factor}));
}

} // namespace

hift_original::hift_original(const tensor_map& state_dict) : hift_original(folded{fold_weight_norm(state_dict)}) {}

hift_original::hift_original(const folded& from)
    : trunk_(from.weights, hift_config(), reach::both_sides), conv_pre_(from.weights, "conv_pre"),
      f0_out_(from.weights, "f0_predictor.classifier") {
  conv_pre_.left = conv_pre_.right = conv_pre_.kernel() / 2;
  for (int i = 0; from.weights.has("f0_predictor.condnet." + std::to_string(i) + ".weight"); i += 2) {
    padded_conv conv(from.weights, "f0_predictor.condnet." + std::to_string(i));
    conv.left = conv.right = conv.kernel() / 2;
    f0_convs_.push_back(std::move(conv));
  }
}

at::Tensor hift_original::f0(const at::Tensor& mel) const {
  auto x = mel;
  for (const auto& conv : f0_convs_) x = at::elu(conv(x));
  return f0_out_(x.transpose(1, 2)).squeeze(-1).abs();
}

/// All in float32 and in the reference's order: the phases grow to 1e6 rad, so another order would change the sound.
at::Tensor hift_original::source(const at::Tensor& f0, const at::Tensor& noise) const {
  const auto samples_per_frame = trunk_.config().frame_samples();
  const auto scale = static_cast<double>(samples_per_frame);
  const auto upsampled = f0.repeat_interleave(samples_per_frame, 1).unsqueeze(-1);
  const auto harmonic = at::arange(1, trunk_.harmonics() + 1, f0.options());
  const auto cycles = at::remainder(upsampled * harmonic / trunk_.config().sample_rate, 1);
  auto phase = resample(cycles.transpose(1, 2), 1.0 / scale).transpose(1, 2);
  phase = at::cumsum(phase, 1) * 2 * std::numbers::pi;
  phase = resample(phase.transpose(1, 2) * scale, scale).transpose(1, 2);
  return trunk_.mix_source(at::sin(phase), noise, upsampled).unsqueeze(1);
}

hift_original::result hift_original::run(const at::Tensor& mel, const at::Tensor& noise,
                                         const at::Tensor& source_cache) const {
  auto excitation = source(f0(mel), noise);
  if (source_cache.defined() && source_cache.size(2) > 0)
    excitation.narrow(2, 0, source_cache.size(2)).copy_(source_cache);
  return {trunk_.decode(conv_pre_(mel), trunk_.source_spectrum(excitation.squeeze(1))), excitation};
}

} // namespace parley::inference::speech
