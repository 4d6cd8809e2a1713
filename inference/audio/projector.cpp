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
  std::vector<std::int64_t> lengths;
  for (const auto& e : encoded) lengths.push_back(e.size(0));
  auto hidden =
      at::relu(at::linear(at::cat(at::TensorList(encoded.data(), encoded.size())), linear1_weight_, linear1_bias_));
  auto rows = at::linear(hidden, linear2_weight_, linear2_bias_).split_with_sizes(lengths);
  std::vector<at::Tensor> result;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto tokens = std::min(lengths[i] / pool_step_, audio_tokens(mel_frames[i], pool_step_));
    result.push_back(rows[i].narrow(0, 0, tokens * pool_step_).unflatten(0, {tokens, pool_step_}).mean(1));
  }
  return result;
}

} // namespace parley::inference::audio
