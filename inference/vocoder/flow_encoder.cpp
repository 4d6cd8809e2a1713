#include "inference/speech/ragged.hpp"
#include "inference/vocoder/flow_encoder_places.hpp"

#include <ATen/ATen.h>

#include <cmath>

namespace parley::inference::speech {
namespace {

constexpr double layer_eps = 1e-12;
constexpr std::int64_t upsampling = 2;

/// Relative positions up to this one are projected once, on loading; streams stay below it (docs/model/talker.md 6,
/// limits).
constexpr std::int64_t table_reach = 1100;

/// Rows for relative positions highest, highest - 1, …: sines in even columns, cosines in odd ones.
at::Tensor position_encoding(std::int64_t highest, std::int64_t rows, std::int64_t width,
                             const at::TensorOptions& like) {
  const auto options = like.dtype(at::kFloat);
  const auto position = at::arange(highest, highest - rows, -1, options).unsqueeze(1);
  const auto frequency = at::exp(at::arange(0, width, 2, options) * (-std::log(10000.0) / static_cast<double>(width)));
  const auto angle = position * frequency;
  return at::stack({at::sin(angle), at::cos(angle)}, 2).reshape({rows, width}).to(like.dtype());
}

at::Tensor last_columns(const at::Tensor& x, std::int64_t n) {
  return x.slice(2, x.size(2) - n).clone();
}

std::vector<at::Tensor> as_columns(const std::vector<at::Tensor>& rows) {
  std::vector<at::Tensor> result;
  result.reserve(rows.size());
  for (const auto& x : rows) result.push_back(x.t().unsqueeze(0));
  return result;
}

at::Tensor as_rows(const at::Tensor& columns) {
  return columns.squeeze(0).t();
}

} // namespace

at::Tensor flow_encoder::embedding::operator()(const at::Tensor& x) const {
  return norm(project(x)) * std::sqrt(static_cast<double>(norm.weight.size(0)));
}

flow_encoder::layer::layer(const tensor_map& weights, const std::string& name)
    : attention_norm(weights, name + ".norm_mha", layer_eps), feed_norm(weights, name + ".norm_ff", layer_eps),
      query(weights, name + ".self_attn.linear_q"), key(weights, name + ".self_attn.linear_k"),
      value(weights, name + ".self_attn.linear_v"), out(weights, name + ".self_attn.linear_out"),
      position(weights, name + ".self_attn.linear_pos"), widen(weights, name + ".feed_forward.w_1"),
      narrow(weights, name + ".feed_forward.w_2"), content_bias(weights.at(name + ".self_attn.pos_bias_u", {-1, -1})),
      position_bias(weights.at(name + ".self_attn.pos_bias_v", {-1, -1})),
      table(project_positions(table_reach - 1, 2 * table_reach - 1)) {}

at::Tensor flow_encoder::layer::project_positions(std::int64_t highest, std::int64_t rows) const {
  const auto encoded = position_encoding(highest, rows, position.weight.size(1), position.weight.options());
  return position(encoded).view({rows, content_bias.size(0), -1}).transpose(0, 1).contiguous();
}

/// Relative positions from total - 1 (the newest query to the oldest key) down to 1 - fresh.
at::Tensor flow_encoder::layer::positions(std::int64_t total, std::int64_t fresh) const {
  const auto rows = total + fresh - 1;
  return total <= table_reach ? table.narrow(1, table_reach - total, rows) : project_positions(total - 1, rows);
}

/// q [heads, fresh, d], kv [heads, total, k | v] with the new rows last → [fresh, heads * d]
at::Tensor flow_encoder::layer::attend(const at::Tensor& q, const at::Tensor& kv) const {
  const auto heads = q.size(0), fresh = q.size(1), d = q.size(2), total = kv.size(1);
  const auto keys = kv.narrow(2, 0, d), values = kv.narrow(2, d, d);
  const auto content = at::matmul(q + content_bias.unsqueeze(1), keys.transpose(1, 2));
  const auto by_distance =
      at::matmul(q + position_bias.unsqueeze(1), positions(total, fresh).transpose(1, 2)).contiguous();
  // New row i reads the distances from column fresh - 1 - i on.
  const auto columns = by_distance.size(2);
  const auto shifted = by_distance.as_strided({heads, fresh, total}, {fresh * columns, columns - 1, 1},
                                              by_distance.storage_offset() + fresh - 1);
  const auto attention = at::softmax((content + shifted) / std::sqrt(static_cast<double>(d)), -1);
  return at::matmul(attention, values).transpose(0, 1).reshape({fresh, heads * d});
}

at::Tensor flow_encoder::layer::attend_each(const at::Tensor& q, const at::Tensor& kv,
                                            std::span<const std::int64_t> lengths, std::span<const job> jobs,
                                            std::size_t index) const {
  const auto queries = cut(q.transpose(0, 1), lengths, 1), fresh = cut(kv.transpose(0, 1), lengths, 1);
  std::vector<at::Tensor> attended;
  attended.reserve(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    auto& past = jobs[i].stream->attention[index];
    past.push_back(fresh[i]);
    attended.push_back(attend(queries[i], past.join()));
  }
  return at::cat(attended, 0);
}

at::Tensor flow_encoder::layer::run(at::Tensor x, const places& at, bool mel_rate, std::span<const job> jobs,
                                    std::size_t index) const {
  const auto heads = content_bias.size(0), d = content_bias.size(1);
  const std::span<const std::int64_t> lengths = mel_rate ? at.mel_rows_ : at.rows_;
  const auto normed = attention_norm(x);
  const auto q = query(normed).view({-1, heads, d});
  const auto kv = at::cat({key(normed).view({-1, heads, d}), value(normed).view({-1, heads, d})}, 2);
  x = x + out(at.memory_ == nullptr ? attend_each(q, kv, lengths, jobs, index)
                                    : attend_together(q, kv, at, mel_rate, index));
  return x + narrow(at::silu(widen(feed_norm(x))));
}

flow_encoder::flow_encoder(const tensor_map& weights)
    : width_(weights.at("after_norm.weight", {-1}).size(0)), embed_{{weights, "embed.out.0"},
                                                                    {weights, "embed.out.1", 1e-5}},
      embed_upsampled_{{weights, "up_embed.out.0"}, {weights, "up_embed.out.1", 1e-5}},
      lookahead_first_(weights, "pre_lookahead_layer.conv1"), lookahead_second_(weights, "pre_lookahead_layer.conv2"),
      up_conv_(weights, "up_layer.conv"), after_norm_(weights, "after_norm", 1e-5) {
  for (int i = 0; i < weights.count("encoders."); ++i)
    token_layers_.emplace_back(weights, "encoders." + std::to_string(i));
  for (int i = 0; i < weights.count("up_encoders."); ++i)
    mel_layers_.emplace_back(weights, "up_encoders." + std::to_string(i));
  if (after_norm_.weight.is_cpu()) return;
  auto as_windows = [](const padded_conv& conv) { return window_conv(conv.weight, conv.bias); };
  lookahead_first_windows_ = as_windows(lookahead_first_);
  lookahead_second_windows_ = as_windows(lookahead_second_);
  up_windows_ = as_windows(up_conv_);
}

void flow_encoder::use_bfloat16() {
  for (auto* layers : {&token_layers_, &mel_layers_})
    for (auto& layer : *layers)
      for (auto* product : {&layer.query, &layer.key, &layer.value, &layer.out, &layer.widen, &layer.narrow})
        product->use_bfloat16();
  for (auto* convolution : {&lookahead_first_, &lookahead_second_, &up_conv_}) convolution->use_bfloat16();
}

/// x: embedded tokens of all jobs → [rows at token rate, width]
at::Tensor flow_encoder::look_ahead_each(const at::Tensor& x, const places& at, std::span<const job> jobs) const {
  auto sequences = cut(x, at.tokens_, 0);
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (jobs[i].last) // zeros after the embedding, not the embeddings of extra tokens
      sequences[i] = at::constant_pad_nd(sequences[i], {0, 0, 0, lookahead_rows});

  auto ahead = convolve_each(as_columns(sequences), lookahead_first_);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    auto& past = jobs[i].stream->lookahead;
    const auto y = at::leaky_relu(ahead[i]);
    ahead[i] = past.defined() ? at::cat({past, y}, 2) : at::constant_pad_nd(y, {lookahead_second_.kernel() - 1, 0});
    past = last_columns(ahead[i], lookahead_second_.kernel() - 1);
  }
  ahead = convolve_each(ahead, lookahead_second_);
  for (std::size_t i = 0; i < jobs.size(); ++i)
    sequences[i] = as_rows(ahead[i]) + sequences[i].narrow(0, 0, at.rows_[i]);
  return at::cat(sequences, 0);
}

/// [rows at token rate, width] → [rows at mel rate, width], before `embed_upsampled_`
at::Tensor flow_encoder::upsample_each(const at::Tensor& x, const places& at, std::span<const job> jobs) const {
  auto raised = as_columns(cut(x.repeat_interleave(upsampling, 0), at.mel_rows_, 0));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    auto& past = jobs[i].stream->upsampled;
    raised[i] =
        past.defined() ? at::cat({past, raised[i]}, 2) : at::constant_pad_nd(raised[i], {up_conv_.kernel() - 1, 0});
    past = last_columns(raised[i], up_conv_.kernel() - 1);
  }
  raised = convolve_each(raised, up_conv_);
  for (auto& each : raised) each = as_rows(each);
  return at::cat(raised, 0);
}

at::Tensor flow_encoder::run(std::span<const job> jobs, const at::Tensor& embeddings, const places& at) const {
  const auto together = at.memory_ != nullptr;
  const kv_history nothing(1);
  for (const auto& job : jobs)
    if (!together && job.stream->attention.empty()) job.stream->attention.resize(layers(), nothing);
  auto x = embed_(embeddings);
  x = together ? look_ahead_together(x, at) : look_ahead_each(x, at, jobs);
  for (std::size_t n = 0; n < token_layers_.size(); ++n) x = token_layers_[n].run(x, at, false, jobs, n);
  x = embed_upsampled_(together ? upsample_together(x, at) : upsample_each(x, at, jobs));
  for (std::size_t n = 0; n < mel_layers_.size(); ++n)
    x = mel_layers_[n].run(x, at, true, jobs, token_layers_.size() + n);
  return after_norm_(x);
}

} // namespace parley::inference::speech
