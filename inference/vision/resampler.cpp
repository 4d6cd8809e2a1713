#include "inference/vision/resampler.hpp"

#include "inference/vision/attention.hpp"
#include "inference/vision/positions.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace parley::inference::vision {

namespace {

constexpr double norm_eps = 1e-6;
constexpr std::int64_t common_side = 70; ///< in patches; longer pieces are rare and compute their own table

} // namespace

resampler::resampler(const vision_config& config, int hidden_size, const weights& w)
    : hidden_(hidden_size), heads_(config.resampler_heads) {
  const auto h = hidden_;
  auto attention = w.sub("attn.");
  auto weight = attention.tensor("in_proj_weight", {3 * h, h}).chunk(3);
  auto bias = attention.tensor("in_proj_bias", {3 * h}).chunk(3);
  auto query = w.tensor("query", {config.query_num, h});
  query = at::layer_norm(query, {h}, w.tensor("ln_q.weight", {h}), w.tensor("ln_q.bias", {h}), norm_eps);
  query_ = at::linear(query, weight[0], bias[0]);
  kv_proj_ = w.tensor("kv_proj.weight", {h, config.hidden_size});
  ln_kv_weight_ = w.tensor("ln_kv.weight", {h});
  ln_kv_bias_ = w.tensor("ln_kv.bias", {h});
  key_weight_ = weight[1];
  key_bias_ = bias[1];
  value_weight_ = weight[2];
  value_bias_ = bias[2];
  out_weight_ = attention.tensor("out_proj.weight", {h, h});
  out_bias_ = attention.tensor("out_proj.bias", {h});
  ln_post_weight_ = w.tensor("ln_post.weight", {h});
  ln_post_bias_ = w.tensor("ln_post.bias", {h});
  proj_ = w.tensor("proj", {h, h});
  sines_ = sine_table(common_side, h / 2).to(w.device(), w.dtype());
}

at::Tensor resampler::resample(const at::Tensor& patches, std::span<const patch_grid* const> pieces) const {
  std::vector<std::int64_t> key_rows, query_rows(pieces.size(), query_.size(0));
  for (const auto* piece : pieces) key_rows.push_back(piece->patches());
  auto x = at::layer_norm(at::linear(patches, kv_proj_), {hidden_}, ln_kv_weight_, ln_kv_bias_, norm_eps);
  auto keys = at::linear(x + places(pieces), key_weight_, key_bias_);
  auto values = at::linear(x, value_weight_, value_bias_);
  const auto count = static_cast<std::int64_t>(pieces.size());
  auto seen = attend_within(query_.repeat({count, 1}), keys, values, query_rows, key_rows, heads_);
  auto out = at::linear(seen, out_weight_, out_bias_);
  out = at::layer_norm(out, {hidden_}, ln_post_weight_, ln_post_bias_, norm_eps);
  return at::matmul(out, proj_).view({count, -1, hidden_});
}

/// The positions added to the keys: the column's sines, then the row's, [patches, hidden].
at::Tensor resampler::places(std::span<const patch_grid* const> pieces) const {
  std::vector<at::Tensor> all;
  for (const auto* piece : pieces) {
    const std::int64_t rows = piece->rows, columns = piece->columns, side = std::max(rows, columns);
    auto table = side <= common_side ? sines_ : sine_table(side, hidden_ / 2).to(sines_.options());
    auto across = table.narrow(0, 0, columns).unsqueeze(0).expand({rows, columns, hidden_ / 2});
    auto down = table.narrow(0, 0, rows).unsqueeze(1).expand({rows, columns, hidden_ / 2});
    all.push_back(at::cat({across, down}, 2).flatten(0, 1));
  }
  return at::cat(all);
}

} // namespace parley::inference::vision
