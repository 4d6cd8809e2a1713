#include "inference/tts/embeddings.hpp"

#include "inference/kernels/transfer.hpp"

#include <ATen/ATen.h>

#include <stdexcept>

namespace parley::inference::speech {

tensor_map read_tts_weights(const checkpoint& from, at::Device device) {
  static const std::string prefix = "tts.";
  tensor_map result((from.directory() / "tts.*").string());
  for (const auto& name : from.names(prefix)) {
    const auto own = name.substr(prefix.size());
    if ((own.starts_with("model.") && own != "model.embed_tokens.weight") || own.starts_with("head_code."))
      result.put(own, from.tensor(name, at::kFloat, device));
  }
  if (result.size() == 0) throw std::runtime_error(result.origin() + ": no such tensors");
  return result;
}

tts_embeddings tts_embeddings::open(const checkpoint& from, const tts_config& config, at::Device device) {
  const auto text = from.stored("tts.emb_text.weight");
  auto row = [&](std::int64_t id) {
    if (id < 0 || id >= text.size(0))
      throw std::runtime_error(from.directory().string() +
                               ": config.json names a token that tts.emb_text doesn't have");
    return text.narrow(0, id, 1).to(device, at::kFloat);
  };
  return {from.tensor("tts.emb_code.0.weight", at::kFloat, device), row(config.audio_bos_token_id),
          row(config.text_eos_token_id)};
}

at::Tensor tts_embeddings::codes(std::span<const std::int64_t> tokens) const {
  return codes(upload(at::tensor(at::IntArrayRef(tokens.data(), tokens.size()), at::kLong), codes_.device()));
}

} // namespace parley::inference::speech
