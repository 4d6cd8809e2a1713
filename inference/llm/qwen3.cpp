#include "inference/llm/qwen3.hpp"

#include "inference/llm/norm.hpp"

#include <ATen/ATen.h>

#include <string>

namespace parley::inference::llm {

namespace {

/// Matrix products of fewer rows take other paths, which round differently: a row must not depend on its company.
constexpr std::int64_t least_rows = 4;

at::Tensor with_least_rows(const at::Tensor& x) {
  auto missing = least_rows - x.size(0);
  return missing > 0 ? at::constant_pad_nd(x, {0, 0, 0, missing}) : x;
}

at::Tensor as_tensor(std::span<const std::int64_t> numbers, at::Device device) {
  auto t = at::empty({static_cast<std::int64_t>(numbers.size())}, at::kLong);
  std::copy(numbers.begin(), numbers.end(), t.mutable_data_ptr<std::int64_t>());
  return t.to(device);
}

} // namespace

qwen3::qwen3(const llm_config& config, const weights& w)
    : config_(config), rope_(config.head_dim, config.rope_theta, w.device()),
      embedding_(w.tensor("model.embed_tokens.weight", {-1, config.hidden_size})),
      norm_(w.tensor("model.norm.weight", {config.hidden_size})),
      head_(w.tensor("lm_head.weight", {embedding_.size(0), config.hidden_size})) {
  auto hidden = config.hidden_size, ffn = config.intermediate_size, head_dim = config.head_dim;
  auto query = config.heads * head_dim, key = config.kv_heads * head_dim;
  for (auto i = 0; i < config.layers; ++i) {
    auto part = w.sub("model.layers." + std::to_string(i) + ".");
    layer l;
    l.input_norm = part.tensor("input_layernorm.weight", {hidden});
    l.post_norm = part.tensor("post_attention_layernorm.weight", {hidden});
    l.query_norm = part.tensor("self_attn.q_norm.weight", {head_dim});
    l.key_norm = part.tensor("self_attn.k_norm.weight", {head_dim});
    l.qkv = at::cat({part.tensor("self_attn.q_proj.weight", {query, hidden}),
                     part.tensor("self_attn.k_proj.weight", {key, hidden}),
                     part.tensor("self_attn.v_proj.weight", {key, hidden})});
    l.out = part.tensor("self_attn.o_proj.weight", {hidden, query});
    l.gate_up =
        at::cat({part.tensor("mlp.gate_proj.weight", {ffn, hidden}), part.tensor("mlp.up_proj.weight", {ffn, hidden})});
    l.down = part.tensor("mlp.down_proj.weight", {hidden, ffn});
    layers_.push_back(std::move(l));
  }
}

at::Tensor qwen3::embed(const at::Tensor& ids) const {
  return embedding_.index_select(0, ids);
}

at::Tensor qwen3::embed(std::span<const token_id> ids) const {
  return embed(as_tensor(ids, device()));
}

at::Tensor qwen3::forward(const at::Tensor& embeddings, std::span<const sequence_rows> sequences,
                          std::span<const std::int64_t> wanted, forward_trace* trace) const {
  std::vector<std::int64_t> positions, targets;
  for (const auto& s : sequences) {
    s.cache->reserve(s.rows);
    s.cache->rows_to_write(s.rows, targets);
    for (auto i = std::int64_t{0}; i < s.rows; ++i) positions.push_back(s.cache->length() + s.shift + i);
  }
  const ragged_attention attention(sequences, embeddings.options());
  auto target = as_tensor(targets, device());
  auto turn = rope_.at(as_tensor(positions, at::kCPU));
  auto rows = embeddings.size(0);
  auto given = [rows](const at::Tensor& t) { return t.narrow(0, 0, rows); };
  auto heads = config_.heads, kv_heads = config_.kv_heads, head_dim = config_.head_dim;

  auto x = with_least_rows(embeddings);
  auto attended = at::zeros({x.size(0), std::int64_t{heads} * head_dim}, x.options());
  for (auto i = 0; i < config_.layers; ++i) {
    const auto& l = layers_[static_cast<std::size_t>(i)];
    if (trace) trace->hiddens.push_back(given(x));
    auto qkv = given(at::linear(rms_norm(x, l.input_norm, config_.rms_norm_eps), l.qkv)).view({rows, -1, head_dim});
    auto q = rope::apply(rms_norm(qkv.narrow(1, 0, heads), l.query_norm, config_.rms_norm_eps), turn);
    auto k = rope::apply(rms_norm(qkv.narrow(1, heads, kv_heads), l.key_norm, config_.rms_norm_eps), turn);
    sequences.front().cache->write(i, target, k, qkv.narrow(1, heads + kv_heads, kv_heads));
    attention.run(i, q, attended);
    x = x + at::linear(attended, l.out);
    auto gate_up = at::linear(rms_norm(x, l.post_norm, config_.rms_norm_eps), l.gate_up).chunk(2, -1);
    x = x + at::linear(at::silu(gate_up[0]).mul_(gate_up[1]), l.down);
  }
  if (trace) trace->hiddens.push_back(given(rms_norm(x, norm_, config_.rms_norm_eps)));
  for (const auto& s : sequences) s.cache->commit(s.rows);
  if (wanted.empty()) return at::empty({0, config_.hidden_size}, x.options());
  return rms_norm(x.index_select(0, as_tensor(wanted, device())), norm_, config_.rms_norm_eps);
}

at::Tensor qwen3::logits(const at::Tensor& hidden) const {
  return at::linear(with_least_rows(hidden), head_).narrow(0, 0, hidden.size(0)).to(at::kFloat);
}

} // namespace parley::inference::llm
