#include "inference/vision/encoder.hpp"

#include "inference/vision/attention.hpp"
#include "inference/vision/positions.hpp"

#include <ATen/ATen.h>

#include <stdexcept>

namespace parley::inference::vision {

encoder::encoder(const vision_config& config, const weights& w)
    : config_(config), table_side_(config.image_size / config.patch_size) {
  const std::int64_t d = config.hidden_size, f = config.intermediate_size, p = config.patch_size;
  if (d % config.heads != 0)
    throw std::runtime_error("vision_config: hidden_size is not a multiple of the attention heads");
  auto channel = [&](const std::array<double, 3>& values) {
    return at::tensor({values[0], values[1], values[2]}, at::kFloat).view({3, 1, 1}).to(w.device());
  };
  mean_ = channel(config.norm_mean);
  std_ = channel(config.norm_std);
  patch_weight_ = w.tensor("embeddings.patch_embedding.weight", {d, 3, p, p}).flatten(1);
  patch_bias_ = w.tensor("embeddings.patch_embedding.bias", {d});
  positions_ = w.tensor("embeddings.position_embedding.weight", {table_side_ * table_side_, d});
  norm_weight_ = w.tensor("post_layernorm.weight", {d});
  norm_bias_ = w.tensor("post_layernorm.bias", {d});
  for (int i = 0; i < config.layers; ++i) {
    auto at = w.sub("encoder.layers." + std::to_string(i) + ".");
    auto self = at.sub("self_attn.");
    layer l;
    l.norm1_weight = at.tensor("layer_norm1.weight", {d});
    l.norm1_bias = at.tensor("layer_norm1.bias", {d});
    l.qkv_weight = at::cat({self.tensor("q_proj.weight", {d, d}), self.tensor("k_proj.weight", {d, d}),
                            self.tensor("v_proj.weight", {d, d})});
    l.qkv_bias =
        at::cat({self.tensor("q_proj.bias", {d}), self.tensor("k_proj.bias", {d}), self.tensor("v_proj.bias", {d})});
    l.out_weight = self.tensor("out_proj.weight", {d, d});
    l.out_bias = self.tensor("out_proj.bias", {d});
    l.norm2_weight = at.tensor("layer_norm2.weight", {d});
    l.norm2_bias = at.tensor("layer_norm2.bias", {d});
    l.fc1_weight = at.tensor("mlp.fc1.weight", {f, d});
    l.fc1_bias = at.tensor("mlp.fc1.bias", {f});
    l.fc2_weight = at.tensor("mlp.fc2.weight", {d, f});
    l.fc2_bias = at.tensor("mlp.fc2.bias", {d});
    layers_.push_back(std::move(l));
  }
}

at::Tensor encoder::encode(std::span<const patch_grid* const> pieces, encoder_trace* trace) const {
  std::vector<std::int64_t> lengths;
  std::vector<at::Tensor> places;
  for (const auto* piece : pieces) {
    lengths.push_back(piece->patches());
    places.push_back(position_ids(piece->rows, piece->columns, table_side_));
  }
  auto pixels = normalised(pieces);
  auto x = at::linear(pixels.flatten(1).to(positions_.scalar_type()), patch_weight_, patch_bias_);
  x = x + positions_.index_select(0, at::cat(places).to(positions_.device()));
  if (trace) *trace = {pixels, x};
  const auto eps = config_.layer_norm_eps;
  const auto width = {std::int64_t{config_.hidden_size}};
  for (const auto& l : layers_) {
    auto qkv =
        at::linear(at::layer_norm(x, width, l.norm1_weight, l.norm1_bias, eps), l.qkv_weight, l.qkv_bias).chunk(3, 1);
    auto seen = attend_within(qkv[0], qkv[1], qkv[2], lengths, lengths, config_.heads);
    x = x + at::linear(seen, l.out_weight, l.out_bias);
    auto normed = at::layer_norm(x, width, l.norm2_weight, l.norm2_bias, eps);
    x = x + at::linear(at::gelu(at::linear(normed, l.fc1_weight, l.fc1_bias), "tanh"), l.fc2_weight, l.fc2_bias);
  }
  return at::layer_norm(x, width, norm_weight_, norm_bias_, eps);
}

at::Tensor encoder::normalised(std::span<const patch_grid* const> pieces) const {
  const std::int64_t p = config_.patch_size;
  std::vector<at::Tensor> all;
  for (const auto* piece : pieces)
    all.push_back(
        at::from_blob(const_cast<std::uint8_t*>(piece->values.data()), {piece->patches(), 3, p, p}, at::kByte));
  auto bytes = all.size() == 1 ? all.front() : at::cat(all);
  return bytes.to(mean_.device()).to(at::kFloat).div_(255).sub_(mean_).div_(std_);
}

} // namespace parley::inference::vision
