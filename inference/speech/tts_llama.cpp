#include "inference/speech/tts_llama.hpp"

#include "inference/speech/ragged.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

namespace parley::inference::speech {
namespace {

constexpr std::int64_t smallest_capacity = 64;

at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const auto half = x.size(-1) / 2;
  const auto turned = at::cat({-x.narrow(-1, half, half), x.narrow(-1, 0, half)}, -1);
  return x * cos + turned * sin;
}

} // namespace

at::Tensor tts_cache::keys(std::size_t layer) const {
  return keys_.at(layer).narrow(1, begin_, length_);
}

at::Tensor tts_cache::values(std::size_t layer) const {
  return values_.at(layer).narrow(1, begin_, length_);
}

void tts_cache::keep_last(std::int64_t rows) {
  if (length_ > rows) {
    begin_ += length_ - rows;
    length_ = rows;
  }
}

void tts_cache::assign(std::vector<at::Tensor> keys, std::vector<at::Tensor> values) {
  begin_ = 0;
  length_ = keys.at(0).size(1);
  keys_ = std::move(keys);
  values_ = std::move(values);
}

void tts_cache::extend(std::size_t layers, std::int64_t more, const at::Tensor& like) {
  const auto capacity = keys_.empty() ? 0 : keys_[0].size(1);
  if (begin_ + length_ + more <= capacity) {
    length_ += more;
    return;
  }
  const auto wanted = std::max({smallest_capacity, 2 * length_, length_ + more});
  auto grown = [&](const std::vector<at::Tensor>& side) {
    std::vector<at::Tensor> result;
    for (std::size_t n = 0; n < layers; ++n) {
      result.push_back(at::empty({like.size(0), wanted, like.size(2)}, like.options()));
      if (length_ > 0) result.back().narrow(1, 0, length_).copy_(side[n].narrow(1, begin_, length_));
    }
    return result;
  };
  auto keys = grown(keys_), values = grown(values_);
  keys_ = std::move(keys);
  values_ = std::move(values);
  begin_ = 0;
  length_ += more;
}

void tts_cache::write_last(std::size_t layer, const at::Tensor& keys, const at::Tensor& values) {
  const auto from = begin_ + length_ - keys.size(1);
  keys_[layer].narrow(1, from, keys.size(1)).copy_(keys);
  values_[layer].narrow(1, from, keys.size(1)).copy_(values);
}

tts_llama::tts_llama(const tensor_map& weights, const tts_config& config)
    : config_(config), final_norm_(weights.at("model.norm.weight", {-1})) {
  const auto folded = fold_weight_norm(weights);
  head_ = folded.at("head_code.0.weight", {-1, final_norm_.size(0)});
  const auto count = weights.count("model.layers.");
  for (int i = 0; i < count; ++i) {
    const auto name = "model.layers." + std::to_string(i) + '.';
    const linear q(weights, name + "self_attn.q_proj"), k(weights, name + "self_attn.k_proj"),
        v(weights, name + "self_attn.v_proj"), gate(weights, name + "mlp.gate_proj"), up(weights, name + "mlp.up_proj");
    layer made;
    made.attention_norm = weights.at(name + "input_layernorm.weight", {-1});
    made.feed_norm = weights.at(name + "post_attention_layernorm.weight", {-1});
    made.query_key_value.weight = at::cat({q.weight, k.weight, v.weight}, 0);
    made.gate_up.weight = at::cat({gate.weight, up.weight}, 0);
    made.out = linear(weights, name + "self_attn.o_proj");
    made.down = linear(weights, name + "mlp.down_proj");
    layers_.push_back(std::move(made));
  }
  if (layers_.empty()) throw std::runtime_error(weights.origin() + ": no tensors model.layers.*");
  head_dim_ = layers_[0].out.weight.size(1) / config_.heads;
  if (layers_[0].query_key_value.weight.size(0) != (config_.heads + 2 * config_.kv_heads) * head_dim_)
    throw std::runtime_error(weights.origin() + ": attention heads of config.json don't fit the weights");
  const auto options = final_norm_.options().dtype(at::kFloat);
  frequencies_ =
      1.0 / at::pow(config_.rope_theta, at::arange(0, head_dim_, 2, options) / static_cast<double>(head_dim_));
}

at::Tensor tts_llama::norm(const at::Tensor& x, const at::Tensor& weight) const {
  return x * at::rsqrt(x.square().mean(-1, true) + config_.rms_norm_eps) * weight;
}

tts_llama::angles tts_llama::angles_of(const at::Tensor& positions) const {
  const auto half = positions.to(at::kFloat).unsqueeze(1) * frequencies_;
  const auto both = at::cat({half, half}, 1);
  return {at::cos(both), at::sin(both)};
}

at::Tensor tts_llama::rotate(const at::Tensor& keys, const at::Tensor& positions) const {
  const auto [cos, sin] = angles_of(positions);
  return rotated(keys, cos, sin);
}

/// q [heads, n, head_dim]; the cache holds the same n rows last. Causal. -> [n, heads * head_dim]
at::Tensor tts_llama::attend(const at::Tensor& q, const tts_cache& past, std::size_t layer) const {
  const auto fresh = q.size(1), total = past.length();
  std::optional<at::Tensor> mask;
  if (fresh > 1 && total > fresh) // row i sees the columns up to total - fresh + i
    mask = at::ones({fresh, total}, q.options().dtype(at::kBool)).tril(total - fresh);
  const auto y = at::scaled_dot_product_attention(
      q.unsqueeze(0), past.keys(layer).unsqueeze(0), past.values(layer).unsqueeze(0), mask, 0.0,
      fresh > 1 && total == fresh, std::nullopt, config_.heads != config_.kv_heads);
  return y.squeeze(0).transpose(0, 1).reshape({fresh, -1});
}

at::Tensor tts_llama::forward(std::span<const row> rows) const {
  std::vector<std::int64_t> before;
  for (const auto& row : rows) before.push_back(row.past->length());
  try {
    return extend(rows);
  } catch (...) {
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].past->length_ = before[i];
    throw;
  }
}

at::Tensor tts_llama::extend(std::span<const row> rows) const {
  std::vector<at::Tensor> pieces, positions;
  std::vector<std::int64_t> lengths, last;
  std::int64_t total = 0;
  const auto integers = final_norm_.options().dtype(at::kLong);
  for (const auto& row : rows) {
    const auto n = row.embeddings.size(0);
    pieces.push_back(row.embeddings);
    positions.push_back(at::arange(row.position, row.position + n, integers));
    lengths.push_back(n);
    total += n;
    last.push_back(total - 1);
  }
  auto x = at::cat(pieces, 0);
  const auto [cos, sin] = angles_of(at::cat(positions, 0));
  for (std::size_t n = 0; n < layers_.size(); ++n) {
    const auto& layer = layers_[n];
    const auto parts =
        layer.query_key_value(norm(x, layer.attention_norm)).view({total, -1, head_dim_}).transpose(0, 1);
    const auto q = cut(rotated(parts.narrow(0, 0, config_.heads), cos, sin), lengths, 1);
    const auto k = cut(rotated(parts.narrow(0, config_.heads, config_.kv_heads), cos, sin), lengths, 1);
    const auto v = cut(parts.narrow(0, config_.heads + config_.kv_heads, config_.kv_heads), lengths, 1);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto& past = *rows[i].past;
      if (n == 0) past.extend(layers_.size(), lengths[i], k[i]);
      past.write_last(n, k[i], v[i]);
      pieces[i] = attend(q[i], past, n);
    }
    x = x + layer.out(at::cat(pieces, 0));
    const auto halves = layer.gate_up(norm(x, layer.feed_norm)).chunk(2, 1);
    x = x + layer.down(at::silu(halves[0]) * halves[1]);
  }
  return norm(x.index_select(0, at::tensor(last, integers)), final_norm_);
}

} // namespace parley::inference::speech
