#include "inference/llm/qwen3.hpp"

#include "base/assert.hpp"
#include "inference/kernels/attention.hpp"
#include "inference/kernels/huge_pages.hpp"
#include "inference/kernels/transfer.hpp"
#include "inference/llm/norm.hpp"

#include <ATen/ATen.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace parley::inference::llm {

namespace {

at::Tensor as_tensor(std::span<const std::int64_t> numbers) {
  auto t = at::empty({static_cast<std::int64_t>(numbers.size())}, at::kLong);
  std::copy(numbers.begin(), numbers.end(), t.mutable_data_ptr<std::int64_t>());
  return t;
}

/// Errors of the first layer pass through all others, and those of the last reach the head unmixed: they get 8 bits
/// where the others get 4, unless they are stored in 4.
quantization format_of(int layer, int layers, const weights& part, quantization format) {
  const auto outer = layer == 0 || layer + 1 == layers;
  const auto wider =
      outer && format == quantization::int4 && part.device().is_cpu() && !part.quantized("mlp.down_proj.weight");
  return wider ? quantization::int8 : format;
}

} // namespace

qwen3::qwen3(const llm_config& config, const weights& w, quantization format)
    : config_(config), rope_(config.head_dim, config.rope_theta, w.device()),
      embedding_(w.tensor("model.embed_tokens.weight", {-1, config.hidden_size})),
      norm_(w.tensor("model.norm.weight", {config.hidden_size})), vocabulary_(embedding_.size(0)) {
  constexpr std::string_view attention[] = {"self_attn.q_proj.weight", "self_attn.k_proj.weight",
                                            "self_attn.v_proj.weight"};
  constexpr std::string_view feed_forward[] = {"mlp.gate_proj.weight", "mlp.up_proj.weight"};
  constexpr std::string_view out[] = {"self_attn.o_proj.weight"}, down[] = {"mlp.down_proj.weight"};
  auto hidden = config.hidden_size, ffn = config.intermediate_size, head_dim = config.head_dim;
  auto query = config.heads * head_dim;
  auto head = w.tensor("lm_head.weight", {vocabulary_, hidden});
  if (format != quantization::none && w.device().is_cpu())
    small_head_.emplace(head, quantization::int8);
  else
    head_ = linear(w.mapped("lm_head.weight") ? std::move(head) : cpu::in_huge_pages(head));
  for (auto i = 0; i < config.layers; ++i) {
    const auto part = w.sub("model.layers." + std::to_string(i) + ".");
    const auto bits = format_of(i, config.layers, part, format);
    layer l;
    l.input_norm = part.tensor("input_layernorm.weight", {hidden});
    l.post_norm = part.tensor("post_attention_layernorm.weight", {hidden});
    l.query_norm = part.tensor("self_attn.q_norm.weight", {head_dim});
    l.key_norm = part.tensor("self_attn.k_norm.weight", {head_dim});
    if (!w.device().is_cpu())
      l.turned_norm = at::cat({l.query_norm.expand({config.heads, -1}), l.key_norm.expand({config.kv_heads, -1})});
    l.qkv = linear(part, attention, hidden, bits);
    l.out = linear(part, out, query, bits);
    l.gate_up = linear(part, feed_forward, hidden, bits);
    l.down = linear(part, down, ffn, bits);
    if (l.qkv.out() != (config.heads + 2 * config.kv_heads) * head_dim || l.gate_up.out() != 2 * ffn ||
        l.out.out() != hidden || l.down.out() != hidden)
      throw std::runtime_error("llm.model.layers." + std::to_string(i) + ": the weights do not fit config.json");
    layers_.push_back(std::move(l));
  }
}

std::size_t qwen3::weight_bytes() const {
  auto sum = embedding_.nbytes() + (small_head_ ? small_head_->bytes() : head_.bytes());
  for (const auto& l : layers_) sum += l.qkv.bytes() + l.out.bytes() + l.gate_up.bytes() + l.down.bytes();
  return sum;
}

at::Tensor qwen3::embed(const at::Tensor& ids) const {
  return embedding_.index_select(0, ids);
}

at::Tensor qwen3::embed(std::span<const token_id> ids) const {
  return embed(upload(as_tensor(ids), device()));
}

/// `ids` may be undefined, like `embeddings`.
at::Tensor qwen3::embed(const at::Tensor& ids, const at::Tensor& embeddings) const {
  if (!ids.defined() || ids.numel() == 0) return embeddings;
  const auto rows = embed(ids);
  return embeddings.defined() ? at::cat({rows, embeddings}) : rows;
}

at::Tensor qwen3::forward(const input& rows, std::span<const sequence_rows> sequences,
                          std::span<const std::int64_t> wanted, forward_trace* trace) const {
  call what{sequences, {}, {}};
  std::vector<std::int64_t> positions;
  for (const auto& s : sequences) {
    s.cache->reserve(s.rows);
    s.cache->rows_to_write(s.rows, what.targets);
    for (auto i = std::int64_t{0}; i < s.rows; ++i) positions.push_back(s.cache->length() + s.shift + i);
  }
  what.turn = rope_.at(as_tensor(positions));
  const auto walkable =
      device().is_cpu() && config_.head_dim <= cpu::largest_head && (dtype() == at::kFloat || dtype() == at::kBFloat16);
  const auto x = walkable ? forward_on_cpu(rows, what, wanted, trace) : forward_on_device(rows, what, wanted, trace);
  for (const auto& s : sequences) s.cache->commit(s.rows);
  return rms_norm(x, norm_, config_.rms_norm_eps);
}

at::Tensor qwen3::forward_on_cpu(const input& rows, const call& what, std::span<const std::int64_t> wanted,
                                 forward_trace* trace) const {
  const auto embeddings = embed(rows.ids.empty() ? at::Tensor() : as_tensor(rows.ids), rows.embeddings);
  const auto x = dtype() == at::kFloat ? run_layers_on_cpu<float>(embeddings, what, trace)
                                       : run_layers_on_cpu<cpu::bfloat16>(embeddings, what, trace);
  if (trace) trace->hiddens.push_back(rms_norm(x, norm_, config_.rms_norm_eps));
  return x.index_select(0, as_tensor(wanted));
}

at::Tensor qwen3::forward_on_device(const input& rows, const call& what, std::span<const std::int64_t> wanted,
                                    forward_trace* trace) const {
  if (!rows.embeddings.defined() && !trace && varlen_attention::is_one_call(device(), dtype()))
    if (const auto padded = ragged_attention::shape_of(what.sequences))
      return forward_by_graph(rows, what, *padded, wanted);
  packed_upload numbers;
  const auto ids = numbers.add(rows.ids), targets = numbers.add(what.targets), chosen = numbers.add(wanted);
  const auto cosine = numbers.add(what.turn.cosine.to(dtype())), sine = numbers.add(what.turn.sine.to(dtype()));
  ragged_attention attention(what.sequences, numbers);
  numbers.send(device());
  attention.use(numbers);
  const auto each_row = [&](const packed_upload::part& part) { return numbers[part].view({-1, 1, config_.head_dim}); };
  const device_call there{what.sequences.front().cache->sibling(),
                          std::move(attention),
                          numbers[targets],
                          {each_row(cosine), each_row(sine)}};
  const auto x = run_layers(embed(numbers[ids], rows.embeddings), there, trace);
  if (trace) trace->hiddens.push_back(rms_norm(x, norm_, config_.rms_norm_eps));
  return x.index_select(0, numbers[chosen]);
}

/// A token of each sequence, with padding behind.
at::Tensor qwen3::forward_by_graph(const input& rows, const call& what, const ragged_attention::shape& padded,
                                   std::span<const std::int64_t> wanted) const {
  const auto& any = *what.sequences.front().cache;
  const auto padding = padded.rows - std::ssize(rows.ids);
  std::vector<token_id> tokens(rows.ids.begin(), rows.ids.end());
  auto written = what.targets;
  for (auto i = std::int64_t{0}; i < padding; ++i) {
    tokens.push_back(0);
    written.push_back(any.spare_row() + i);
  }
  const auto turned = [&](const at::Tensor& x) { return at::constant_pad_nd(x, {0, 0, 0, 0, 0, padding}).to(dtype()); };
  packed_upload numbers;
  std::vector<std::int64_t> chosen(wanted.begin(), wanted.end());
  PARLEY_ASSERT(std::ssize(chosen) <= padded.rows, "a row is wanted once");
  chosen.resize(static_cast<std::size_t>(padded.rows));
  const auto ids = numbers.add(tokens), targets = numbers.add(written), last = numbers.add(chosen);
  const auto cosine = numbers.add(turned(what.turn.cosine)), sine = numbers.add(turned(what.turn.sine));
  ragged_attention attention(what.sequences, padded, numbers);
  const auto there = std::make_shared<device_call>(device_call{any.sibling(), std::move(attention), {}, {}});
  const auto work = [this, there, ids, targets, last, cosine, sine](const packed_upload& sent,
                                                                    std::span<const at::Tensor>) {
    const auto each_row = [&](const packed_upload::part& part) { return sent[part].view({-1, 1, config_.head_dim}); };
    there->attention.use(sent);
    there->targets = sent[targets];
    there->turn = {each_row(cosine), each_row(sine)};
    return run_layers(embed(sent[ids], {}), *there, nullptr).index_select(0, sent[last]);
  };
  const auto pool = any.pool_keys(0);
  const graph_cache::key shape{padded.rows,         padded.in_order ? 1 : 0,
                               padded.earlier_runs, padded.keys,
                               pool.size(0),        reinterpret_cast<std::int64_t>(pool.const_data_ptr())};
  return graphs_.run(shape, std::move(numbers), {}, device(), work).narrow(0, 0, std::ssize(wanted));
}

/// Queries and keys, normalised: `qkv` [rows, heads + 2 * kv_heads, head_dim] → [rows, heads + kv_heads, head_dim].
/// Values are normalised too, and not used: contiguous rows need no copy.
at::Tensor qwen3::query_key_norm(const layer& l, const at::Tensor& qkv) const {
  const auto turned = config_.heads + config_.kv_heads;
  if (l.turned_norm.defined()) return rms_norm(qkv, {}, config_.rms_norm_eps).narrow(1, 0, turned) * l.turned_norm;
  return at::cat({rms_norm(qkv.narrow(1, 0, config_.heads), l.query_norm, config_.rms_norm_eps),
                  rms_norm(qkv.narrow(1, config_.heads, config_.kv_heads), l.key_norm, config_.rms_norm_eps)},
                 1);
}

at::Tensor qwen3::run_layers(const at::Tensor& embeddings, const device_call& what, forward_trace* trace) const {
  const auto heads = config_.heads, kv_heads = config_.kv_heads, head_dim = config_.head_dim;
  const auto rows = embeddings.size(0);
  const auto eps = config_.rms_norm_eps;
  auto x = embeddings.clone();
  for (auto i = 0; i < config_.layers; ++i) {
    const auto& l = layers_[static_cast<std::size_t>(i)];
    if (trace) trace->hiddens.push_back(x.clone());
    const auto qkv = l.qkv(rms_norm(x, l.input_norm, eps)).view({rows, -1, head_dim});
    const auto turned = rope::apply(query_key_norm(l, qkv), what.turn);
    what.pool.write(i, what.targets, turned.narrow(1, heads, kv_heads), qkv.narrow(1, heads + kv_heads, kv_heads));
    const auto attended =
        what.attention.run(turned.narrow(1, 0, heads), what.pool.pool_keys(i), what.pool.pool_values(i));
    l.out.add_to(x, attended.reshape({rows, heads * head_dim}));
    const auto gate_up = l.gate_up(rms_norm(x, l.post_norm, eps)).chunk(2, -1);
    l.down.add_to(x, at::silu(gate_up[0]).mul_(gate_up[1]));
  }
  return x;
}

at::Tensor qwen3::logits(const at::Tensor& hidden) const {
  return small_head_ ? small_head_->precise_product(hidden) : head_(hidden).to(at::kFloat);
}

} // namespace parley::inference::llm
