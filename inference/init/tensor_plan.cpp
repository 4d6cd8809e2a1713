#include "inference/init/tensor_plan.hpp"

#include "inference/init/plan.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

namespace parley::inference::init {

namespace {

std::string layer(size i) {
  return "layers." + std::to_string(i) + ".";
}

/// Decoder layers of Qwen3 and of the speech-token llama.
void decoder_layer(const plan& p, size d, size q_width, size kv_width, size ffn) {
  p.scale("input_layernorm.weight", d);
  p.scale("post_attention_layernorm.weight", d);
  p.weight("self_attn.q_proj.weight", {q_width, d});
  p.weight("self_attn.k_proj.weight", {kv_width, d});
  p.weight("self_attn.v_proj.weight", {kv_width, d});
  p.weight("self_attn.o_proj.weight", {d, q_width});
  p.weight("mlp.gate_proj.weight", {ffn, d});
  p.weight("mlp.up_proj.weight", {ffn, d});
  p.weight("mlp.down_proj.weight", {d, ffn});
}

void plan_llm(const plan& p, const nlohmann::json& c) {
  size d = c.at("hidden_size");
  size head = c.at("head_dim");
  size heads = c.at("num_attention_heads");
  size kv_heads = c.at("num_key_value_heads");
  p.table("model.embed_tokens.weight", c.at("vocab_size"), d);
  for (size i = 0; i < c.at("num_hidden_layers").get<size>(); ++i) {
    auto l = p.under("model." + layer(i));
    decoder_layer(l, d, heads * head, kv_heads * head, c.at("intermediate_size"));
    l.scale("self_attn.q_norm.weight", head);
    l.scale("self_attn.k_norm.weight", head);
  }
  p.scale("model.norm.weight", d);
  p.weight("lm_head.weight", {c.at("vocab_size"), d});
}

void plan_vision(const plan& p, const nlohmann::json& c) {
  const auto& v = c.at("vision_config");
  size d = v.at("hidden_size");
  size patch = v.at("patch_size");
  size side = v.at("image_size").get<size>() / patch;
  p.weight("embeddings.patch_embedding.weight", {d, 3, patch, patch});
  p.bias("embeddings.patch_embedding.bias", d);
  p.table("embeddings.position_embedding.weight", side * side, d);
  auto layers = v.at("num_hidden_layers").get<size>() - (c.at("drop_vision_last_layer").get<bool>() ? 1 : 0);
  for (size i = 0; i < layers; ++i) {
    auto l = p.under("encoder." + layer(i));
    l.layer_norm("layer_norm1", d);
    l.layer_norm("layer_norm2", d);
    for (auto name : {"q_proj", "k_proj", "v_proj", "out_proj"}) l.linear(std::string("self_attn.") + name, d, d);
    l.linear("mlp.fc1", v.at("intermediate_size"), d);
    l.linear("mlp.fc2", d, v.at("intermediate_size"));
  }
  p.layer_norm("post_layernorm", d);
}

void plan_resampler(const plan& p, const nlohmann::json& c) {
  size d = c.at("hidden_size");
  p.table("query", c.at("query_num"), d);
  p.weight("kv_proj.weight", {d, c.at("vision_config").at("hidden_size")});
  p.weight("attn.in_proj_weight", {3 * d, d});
  p.bias("attn.in_proj_bias", 3 * d);
  p.linear("attn.out_proj", d, d);
  for (auto name : {"ln_q", "ln_kv", "ln_post"}) p.layer_norm(name, d);
  p.weight("proj", {d, d});
}

void plan_audio(const plan& p, const nlohmann::json& a) {
  size d = a.at("d_model");
  p.weight("conv1.weight", {d, a.at("num_mel_bins"), 3});
  p.bias("conv1.bias", d);
  p.weight("conv2.weight", {d, d, 3});
  p.bias("conv2.bias", d);
  p.table("embed_positions.weight", a.at("max_source_positions"), d);
  for (size i = 0; i < a.at("encoder_layers").get<size>(); ++i) {
    auto l = p.under(layer(i));
    for (auto name : {"q_proj", "v_proj", "out_proj"}) l.linear(std::string("self_attn.") + name, d, d);
    l.weight("self_attn.k_proj.weight", {d, d});
    l.layer_norm("self_attn_layer_norm", d);
    l.layer_norm("final_layer_norm", d);
    l.linear("fc1", a.at("encoder_ffn_dim"), d);
    l.linear("fc2", d, a.at("encoder_ffn_dim"));
  }
  p.layer_norm("layer_norm", d);
}

void plan_two_layers(const plan& p, size in, size out) {
  p.linear("linear1", out, in);
  p.linear("linear2", out, out);
}

void plan_tts(const plan& p, const nlohmann::json& t) {
  constexpr size unused_llama_vocabulary = 32000; // model.embed_tokens: stored, but never read
  size d = t.at("hidden_size");
  size codes = t.at("num_audio_tokens");
  p.table("emb_text.weight", t.at("num_text_tokens"), d);
  p.table("emb_code.0.weight", codes, d);
  p.add("head_code.0.parametrizations.weight.original0", {codes, 1}, 1, 0.05);
  p.weight("head_code.0.parametrizations.weight.original1", {codes, d});
  plan_two_layers(p.under("projector_spk."), t.at("llm_dim"), d);
  plan_two_layers(p.under("projector_semantic."), t.at("llm_dim"), d);
  p.table("model.embed_tokens.weight", unused_llama_vocabulary, d);
  for (size i = 0; i < t.at("num_hidden_layers").get<size>(); ++i)
    decoder_layer(p.under("model." + layer(i)), d, d, d, t.at("intermediate_size"));
  p.scale("model.norm.weight", d);
}

} // namespace

std::uint64_t planned_tensor::values() const {
  return static_cast<std::uint64_t>(std::accumulate(shape.begin(), shape.end(), size{1}, std::multiplies<>()));
}

std::vector<planned_tensor> plan_tensors(const nlohmann::json& config) {
  std::vector<planned_tensor> result;
  plan all(result);
  plan_audio(all.under("apm."), config.at("audio_config"));
  plan_two_layers(all.under("audio_projection_layer."), config.at("audio_config").at("d_model"),
                  config.at("hidden_size"));
  plan_llm(all.under("llm."), config);
  plan_resampler(all.under("resampler."), config);
  plan_tts(all.under("tts."), config.at("tts_config"));
  plan_vision(all.under("vpm."), config);
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return result;
}

} // namespace parley::inference::init
