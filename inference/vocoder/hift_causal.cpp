#include "inference/vocoder/hift_causal.hpp"

#include <ATen/ATen.h>

#include <stdexcept>

namespace parley::inference::speech {

hift_causal::hift_causal(const tensor_map& state_dict, hift_config config)
    : hift_causal(folded{fold_weight_norm(state_dict, "f0_predictor.")}, std::move(config)) {}

hift_causal::hift_causal(const folded& from, hift_config config)
    : trunk_(from.weights, std::move(config), reach::past_only), conv_pre_(from.weights, "conv_pre"),
      f0_out_(from.weights, "f0_predictor.classifier") {
  for (int i = 0; from.weights.has("f0_predictor.condnet." + std::to_string(i) + ".weight"); i += 2) {
    padded_conv conv(from.weights, "f0_predictor.condnet." + std::to_string(i));
    if (i > 0) {
      conv.left = conv.kernel() - 1;
      f0_left_ += conv.left;
    }
    f0_convs_.push_back(std::move(conv));
  }
  if (f0_convs_.empty()) throw std::runtime_error(from.weights.origin() + ": no tensors f0_predictor.condnet.*");
}

at::Tensor hift_causal::f0(const at::Tensor& mel, bool final) const {
  auto x = mel.to(at::kDouble);
  if (final) x = at::constant_pad_nd(x, {0, f0_right()});
  for (const auto& conv : f0_convs_) x = at::elu(conv(x));
  return f0_out_(x.transpose(1, 2)).squeeze(-1).abs().to(at::kFloat);
}

at::Tensor hift_causal::decode(const at::Tensor& mel, const at::Tensor& source, bool final) const {
  const auto ahead = conv_pre_.kernel() - 1;
  const auto& config = trunk_.config();
  const auto x = conv_pre_(final ? at::constant_pad_nd(mel, {0, ahead}) : mel);
  auto spectrum = trunk_.source_spectrum(source);
  if (!final) spectrum = spectrum.narrow(2, 0, spectrum.size(2) - config.rate() * ahead);
  const auto samples = trunk_.decode(x, spectrum);
  return final ? samples : samples.narrow(1, 0, samples.size(1) - config.frame_samples());
}

at::Tensor hift_causal::decode_together(const at::Tensor& mel, const at::Tensor& source,
                                        const at::Tensor& columns) const {
  const auto x = conv_pre_(mel);
  const auto spectrum = trunk_.source_spectrum(source).narrow(2, 0, x.size(2) * trunk_.config().rate() + 1);
  return trunk_.decode(x, spectrum, columns);
}

} // namespace parley::inference::speech
