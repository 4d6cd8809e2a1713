#include "inference/speech/tts_embeddings.hpp"

#include <ATen/ATen.h>

#include <stdexcept>

namespace parley::inference::speech {

tensor_map read_tts_weights(const checkpoint& from, at::Device device) {
  static const std::string prefix = "tts.";
  tensor_map result((from.directory() / "tts.*").string());
  for (const auto& name : from.names(prefix))
    if (name != "tts.model.embed_tokens.weight") // large, and nothing reads it
      result.put(name.substr(prefix.size()), from.tensor(name, at::kFloat, device));
  if (result.size() == 0) throw std::runtime_error(result.origin() + ": no such tensors");
  return result;
}

tts_embeddings::tts_embeddings(const tensor_map& weights, const tts_config& config)
    : text_(weights.at("emb_text.weight", {-1, -1})), code_(weights.at("emb_code.0.weight", {-1, text_.size(1)})),
      project_first_(weights, "projector_semantic.linear1"), project_second_(weights, "projector_semantic.linear2") {
  for (auto id : {config.audio_bos_token_id, config.text_eos_token_id})
    if (id < 0 || id >= text_.size(0))
      throw std::runtime_error(weights.origin() + ": config.json names a text token that emb_text doesn't have");
  audio_bos_ = text(config.audio_bos_token_id);
  text_eos_ = text(config.text_eos_token_id);
}

at::Tensor tts_embeddings::project(const at::Tensor& hidden) const {
  return project_second_(at::relu(project_first_(hidden)));
}

at::Tensor tts_embeddings::condition(const at::Tensor& tokens, const at::Tensor& hidden, bool normalise) const {
  auto states = project(hidden);
  if (normalise) states = states / states.norm(2, {-1}, true).clamp_min(1e-12);
  return text_.index_select(0, tokens) + states;
}

at::Tensor tts_embeddings::duplex_condition(const at::Tensor& tokens, const at::Tensor& hidden) const {
  if (tokens.numel() == 0) return audio_bos_;
  return at::cat({condition(tokens, hidden, true), audio_bos_}, 0);
}

at::Tensor tts_embeddings::codes(std::span<const std::int64_t> tokens) const {
  const auto ids = at::tensor(at::IntArrayRef(tokens.data(), tokens.size()), at::kLong).to(code_.device());
  return code_.index_select(0, ids);
}

} // namespace parley::inference::speech
