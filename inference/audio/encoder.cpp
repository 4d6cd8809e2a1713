#include "inference/audio/encoder.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace parley::inference::audio {

namespace {

constexpr double norm_eps = 1e-5;
constexpr int frames_per_second = 50; // frame rate after the convolutions

/// A convolution with kernel 3 and one zero frame on each side, as one matrix product over the rows of all sequences.
std::vector<at::Tensor> convolve3(const std::vector<at::Tensor>& sequences, int stride, const at::Tensor& weight,
                                  const at::Tensor& bias) {
  std::vector<at::Tensor> windows;
  std::vector<std::int64_t> lengths;
  for (const auto& sequence : sequences) {
    windows.push_back(at::constant_pad_nd(sequence, {0, 0, 1, 1}).unfold(0, 3, stride));
    lengths.push_back(windows.back().size(0));
  }
  auto rows = at::cat(windows).flatten(1); // [rows, channels * 3], as the weight is stored
  return at::gelu(at::linear(rows, weight, bias)).split_with_sizes(lengths);
}

at::Tensor sdpa(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask) {
  auto scale = 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
  c10::optional<at::Tensor> visible;
  if (mask.defined()) visible = mask;
  return at::scaled_dot_product_attention(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), visible, 0.0, false, scale)
      .squeeze(0);
}

/// Attention of one sequence after another. `attend` must outlive it.
template<class Attend>
auto in_turn(const std::vector<std::int64_t>& lengths, const Attend& attend) {
  return [lengths, &attend](std::size_t layer, const at::Tensor& qkv) {
    const auto parts = qkv.permute({1, 2, 0, 3}); // [3, heads, rows, head_dim]
    std::vector<at::Tensor> outputs;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < lengths.size(); begin += lengths[i], ++i) {
      auto own = parts.narrow(2, begin, lengths[i]);
      outputs.push_back(attend(layer, i, own[0], own[1], own[2]).transpose(0, 1).flatten(1));
    }
    return at::cat(outputs);
  };
}

/// True where a query (row) sees a key (column); undefined if every query sees every key.
at::Tensor block_mask(std::int64_t length, std::int64_t block, std::int64_t valid, at::Device device) {
  if (block <= 0 && valid >= length) return {};
  auto index = at::arange(length, at::TensorOptions().dtype(at::kLong).device(device));
  auto seen = (index < valid).unsqueeze(0).expand({length, length});
  if (block > 0) {
    auto number = index.div(block, "floor");
    seen = seen.logical_and(number.unsqueeze(0) <= number.unsqueeze(1));
  }
  return seen;
}

} // namespace

encoder::encoder(const audio_config& config, const weights& w) : config_(config) {
  std::int64_t d = config.hidden_size;
  conv1_weight_ = w.tensor("conv1.weight", {d, config.mel_bins, 3}).flatten(1);
  conv1_bias_ = w.tensor("conv1.bias", {d});
  conv2_weight_ = w.tensor("conv2.weight", {d, d, 3}).flatten(1);
  conv2_bias_ = w.tensor("conv2.bias", {d});
  positions_ = w.tensor("embed_positions.weight", {config.max_positions, d});
  norm_weight_ = w.tensor("layer_norm.weight", {d});
  norm_bias_ = w.tensor("layer_norm.bias", {d});
  if (d % config.heads != 0) throw std::runtime_error("audio_config: d_model is not a multiple of the attention heads");
  for (int i = 0; i < config.layers; ++i) {
    auto at = w.sub("layers." + std::to_string(i) + ".");
    auto self = at.sub("self_attn.");
    layer l;
    l.norm1_weight = at.tensor("self_attn_layer_norm.weight", {d});
    l.norm1_bias = at.tensor("self_attn_layer_norm.bias", {d});
    // Keys have no bias.
    auto q_bias = self.tensor("q_proj.bias", {d});
    l.qkv_weight = at::cat({self.tensor("q_proj.weight", {d, d}), self.tensor("k_proj.weight", {d, d}),
                            self.tensor("v_proj.weight", {d, d})});
    l.qkv_bias = at::cat({q_bias, at::zeros_like(q_bias), self.tensor("v_proj.bias", {d})});
    l.out_weight = self.tensor("out_proj.weight", {d, d});
    l.out_bias = self.tensor("out_proj.bias", {d});
    l.norm2_weight = at.tensor("final_layer_norm.weight", {d});
    l.norm2_bias = at.tensor("final_layer_norm.bias", {d});
    l.fc1_weight = at.tensor("fc1.weight", {config.ffn_size, d});
    l.fc1_bias = at.tensor("fc1.bias", {config.ffn_size});
    l.fc2_weight = at.tensor("fc2.weight", {d, config.ffn_size});
    l.fc2_bias = at.tensor("fc2.bias", {d});
    layers_.push_back(std::move(l));
  }
  if (positions_.is_cpu()) return;
  const auto by_frame = [](const at::Tensor& weight) {
    return weight.unflatten(1, {-1, 3}).transpose(1, 2).flatten(1).contiguous();
  };
  conv1_by_frame_ = by_frame(conv1_weight_);
  conv2_by_frame_ = by_frame(conv2_weight_);
  zero_row_ = at::zeros({1, d}, positions_.options());
  const encoder_pool::shape each{config.layers, config.heads, config.max_positions, d / config.heads};
  pool_ = std::make_shared<encoder_pool>(each, positions_.options());
}

encoder_cache encoder::make_cache() const {
  if (pool_) return {{}, {}, pool_->take(), 0};
  auto shape = {std::int64_t{config_.layers}, std::int64_t{config_.heads}, std::int64_t{config_.max_positions},
                std::int64_t{config_.hidden_size / config_.heads}};
  return {at::empty(shape, positions_.options()), at::empty(shape, positions_.options()), nullptr, 0};
}

void encoder::reserve_caches(std::int64_t caches) const {
  if (pool_) pool_->reserve(caches);
}

std::vector<at::Tensor> encoder::stream(std::span<const stream_chunk> chunks, encoder_trace* trace) const {
  if (chunks.empty()) return {};
  std::vector<kept_frames> kept;
  for (const auto& chunk : chunks) {
    const auto convolved = (chunk.mel.size(0) - 1) / 2 + 1;
    if (chunk.cache->length + convolved >= config_.max_positions) chunk.cache->clear();
    kept.push_back({chunk.drop_front, convolved - chunk.drop_front - chunk.drop_back});
    if (kept.back().count < 1) throw std::runtime_error("audio chunk is shorter than its context");
    positions(chunk.cache->length, kept.back().count); // throws if there are not so many
  }
  auto result = pool_ ? stream_on_device(chunks, kept, trace) : stream_on_cpu(chunks, kept, trace);
  for (std::size_t i = 0; i < chunks.size(); ++i) chunks[i].cache->length += kept[i].count;
  return result;
}

std::vector<at::Tensor> encoder::stream_on_cpu(std::span<const stream_chunk> chunks, std::span<const kept_frames> kept,
                                               encoder_trace* trace) const {
  std::vector<at::Tensor> mels;
  for (const auto& chunk : chunks) mels.push_back(chunk.mel);
  auto rows = convolve(mels);
  std::vector<at::Tensor> places;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    rows[i] = rows[i].narrow(0, kept[i].first, kept[i].count);
    places.push_back(positions(chunks[i].cache->length, kept[i].count));
  }
  auto attend = [&](std::size_t layer, std::size_t i, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    auto& cache = *chunks[i].cache;
    auto keys = cache.own_keys[static_cast<std::int64_t>(layer)];
    auto values = cache.own_values[static_cast<std::int64_t>(layer)];
    keys.narrow(1, cache.length, k.size(1)).copy_(k);
    values.narrow(1, cache.length, v.size(1)).copy_(v);
    auto end = cache.length + k.size(1);
    return sdpa(q, keys.narrow(1, 0, end), values.narrow(1, 0, end), {});
  };
  return run_layers(rows, places, attend, trace);
}

std::vector<at::Tensor> encoder::offline(std::span<const clip_piece> pieces, double chunk_seconds,
                                         encoder_trace* trace) const {
  if (pieces.empty()) return {};
  std::vector<at::Tensor> mels;
  for (const auto& piece : pieces) mels.push_back(piece.mel);
  auto rows = convolve(mels);
  auto block = static_cast<std::int64_t>(chunk_seconds * frames_per_second);
  std::vector<at::Tensor> places;
  std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor> masks; // by length and number of valid frames
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    auto length = rows[i].size(0);
    places.push_back(positions(0, length));
    // The reference compares the number of convolved frames with that of mel frames.
    auto& mask = masks[{length, std::min(length, pieces[i].frames)}];
    if (!mask.defined()) mask = block_mask(length, block, pieces[i].frames, positions_.device());
  }
  auto attend = [&](std::size_t, std::size_t i, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    return sdpa(q, k, v, masks.at({rows[i].size(0), std::min(rows[i].size(0), pieces[i].frames)}));
  };
  return run_layers(rows, places, attend, trace);
}

std::vector<at::Tensor> encoder::offline(std::span<const clip_piece> pieces) const {
  return offline(pieces, config_.chunk_seconds);
}

std::vector<at::Tensor> encoder::convolve(const std::vector<at::Tensor>& mels) const {
  std::vector<at::Tensor> here;
  for (const auto& mel : mels) here.push_back(mel.to(positions_.device(), positions_.scalar_type()));
  return convolve3(convolve3(here, 1, conv1_weight_, conv1_bias_), 2, conv2_weight_, conv2_bias_);
}

at::Tensor encoder::positions(std::int64_t begin, std::int64_t count) const {
  if (begin + count > config_.max_positions)
    throw std::runtime_error("audio is longer than the encoder's " + std::to_string(config_.max_positions) +
                             " positions");
  return positions_.narrow(0, begin, count);
}

std::vector<at::Tensor> encoder::run_layers(const std::vector<at::Tensor>& rows, const std::vector<at::Tensor>& places,
                                            const sequence_attention& attend, encoder_trace* trace) const {
  std::vector<std::int64_t> lengths;
  for (const auto& r : rows) lengths.push_back(r.size(0));
  auto x = at::cat(rows);
  if (trace != nullptr) trace->after_conv = x;
  return run_layers(x + at::cat(places), in_turn(lengths, attend), trace).split_with_sizes(lengths);
}

at::Tensor encoder::run_layers(at::Tensor x, const attention& attend, encoder_trace* trace) const {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (trace != nullptr) trace->hiddens.push_back(x);
    x = run_layer(i, x, attend);
  }
  x = at::layer_norm(x, {std::int64_t{config_.hidden_size}}, norm_weight_, norm_bias_, norm_eps);
  if (trace != nullptr) trace->hiddens.push_back(x);
  return x;
}

at::Tensor encoder::run_layer(std::size_t number, const at::Tensor& before, const attention& attend) const {
  const auto width = {std::int64_t{config_.hidden_size}};
  const auto& l = layers_[number];
  auto normed = at::layer_norm(before, width, l.norm1_weight, l.norm1_bias, norm_eps);
  const auto qkv =
      at::linear(normed, l.qkv_weight, l.qkv_bias).view({-1, 3, config_.heads, config_.hidden_size / config_.heads});
  const auto x = before + at::linear(attend(number, qkv), l.out_weight, l.out_bias);
  normed = at::layer_norm(x, width, l.norm2_weight, l.norm2_bias, norm_eps);
  return x + at::linear(at::gelu(at::linear(normed, l.fc1_weight, l.fc1_bias)), l.fc2_weight, l.fc2_bias);
}

encoder::clip_pass encoder::begin_clip(const clip_piece& piece) const {
  auto rows = convolve({piece.mel}).front();
  const auto length = rows.size(0);
  const auto block = static_cast<std::int64_t>(config_.chunk_seconds * frames_per_second);
  return {rows + positions(0, length), block_mask(length, block, piece.frames, positions_.device())};
}

bool encoder::next_layer(clip_pass& pass) const {
  const auto attend = [&](std::size_t, std::size_t, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    return sdpa(q, k, v, pass.mask);
  };
  pass.x = run_layer(pass.layers, pass.x, in_turn({pass.x.size(0)}, attend));
  if (++pass.layers < layers_.size()) return false;
  pass.x = at::layer_norm(pass.x, {std::int64_t{config_.hidden_size}}, norm_weight_, norm_bias_, norm_eps);
  return true;
}

} // namespace parley::inference::audio
