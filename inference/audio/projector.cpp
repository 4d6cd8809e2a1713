#include "inference/audio/projector.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace parley::inference::audio {

std::int64_t audio_tokens(std::int64_t mel_frames, int pool_step) {
  auto convolved = mel_frames < 1 ? 0 : (mel_frames - 1) / 2 + 1;
  return convolved / pool_step;
}

projector::projector(int pool_step, const weights& w)
    : pool_step_(pool_step), linear1_weight_(w.tensor("linear1.weight")), linear1_bias_(w.tensor("linear1.bias")),
      linear2_weight_(w.tensor("linear2.weight")), linear2_bias_(w.tensor("linear2.bias")) {}

std::vector<at::Tensor> projector::project(std::span<const at::Tensor> encoded,
                                           std::span<const std::int64_t> mel_frames) const {
  if (encoded.empty()) return {};
  std::vector<std::int64_t> tokens;
  std::vector<at::Tensor> used; // the frames of whole tokens
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    tokens.push_back(std::min(encoded[i].size(0) / pool_step_, audio_tokens(mel_frames[i], pool_step_)));
    used.push_back(encoded[i].narrow(0, 0, tokens.back() * pool_step_));
  }
  auto hidden = at::relu(at::linear(at::cat(used), linear1_weight_, linear1_bias_));
  auto rows = at::linear(hidden, linear2_weight_, linear2_bias_);
  return rows.view({-1, pool_step_, rows.size(1)}).mean(1).split_with_sizes(tokens);
}

} // namespace parley::inference::audio
