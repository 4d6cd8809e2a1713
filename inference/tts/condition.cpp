#include "inference/tts/condition.hpp"

#include "inference/kernels/transfer.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace parley::inference::llm {

tts_condition::tts_condition(const tts_bridge_config& config, const weights& w)
    : config_(config), text_embedding_(w.tensor("emb_text.weight")),
      linear1_weight_(w.tensor("projector_semantic.linear1.weight")),
      linear1_bias_(w.tensor("projector_semantic.linear1.bias")),
      linear2_weight_(w.tensor("projector_semantic.linear2.weight")),
      linear2_bias_(w.tensor("projector_semantic.linear2.bias")) {}

at::Tensor tts_condition::embed(std::span<const token_id> ids) const {
  auto index = at::empty({std::ssize(ids)}, at::kLong);
  std::copy(ids.begin(), ids.end(), index.mutable_data_ptr<std::int64_t>());
  return text_embedding_.index_select(0, upload(index, text_embedding_.device()));
}

at::Tensor tts_condition::rows(std::span<const token_id> ids, const at::Tensor& hidden, bool normalize) const {
  auto meaning =
      at::linear(at::relu(at::linear(hidden, linear1_weight_, linear1_bias_)), linear2_weight_, linear2_bias_);
  if (normalize) meaning = meaning / meaning.norm(2, -1, true).clamp_min(1e-12);
  return embed(ids) + meaning;
}

at::Tensor tts_condition::duplex(std::span<const token_id> ids, const at::Tensor& hidden) const {
  token_id end[] = {config_.audio_bos_token_id};
  return ids.empty() ? embed(end) : at::cat({rows(ids, hidden, true), embed(end)});
}

at::Tensor tts_condition::chat(std::span<const token_id> ids, const at::Tensor& hidden) const {
  token_id end[] = {config_.text_eos_token_id, config_.audio_bos_token_id};
  return at::cat({rows(ids, hidden, config_.normalize_projected_hidden), embed(end)});
}

} // namespace parley::inference::llm
