#include "inference/speech/dit.hpp"

#include "inference/speech/ragged.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <numeric>

namespace parley::inference::speech {
namespace {

std::vector<std::int64_t> lengths_of(std::span<const dit::job> jobs) {
  std::vector<std::int64_t> lengths;
  for (const auto& job : jobs) lengths.push_back(job.rows);
  return lengths;
}

at::Tensor norm_shift_scale(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale) {
  return at::addcmul(shift, at::layer_norm(x, {x.size(-1)}, {}, {}, 1e-6), scale + 1);
}

} // namespace

dit::block::block(const tensor_map& weights, const std::string& name)
    : modulate(weights, name + ".adaLN_modulation.1"), query_norm(weights, name + ".attn.q_norm", 1e-5),
      key_norm(weights, name + ".attn.k_norm", 1e-5), attention_out(weights, name + ".attn.proj"),
      conv_first(weights, name + ".conv.block.1"), conv_second(weights, name + ".conv.block.6"),
      conv_norm(weights, name + ".conv.block.3", 1e-5), widen(weights, name + ".mlp.fc1"),
      narrow(weights, name + ".mlp.fc2") {
  const linear q(weights, name + ".attn.to_q"), k(weights, name + ".attn.to_k"), v(weights, name + ".attn.to_v");
  query_key_value.weight = at::cat({q.weight, k.weight, v.weight}, 0);
  if (q.bias.defined()) query_key_value.bias = at::cat({q.bias, k.bias, v.bias}, 0);
}

/// x [2, N, width]. No positions and no mask: a chunk sees itself and everything that its cache holds.
at::Tensor dit::block::attend(const at::Tensor& x, std::span<const job> jobs, std::size_t index) const {
  const auto d = query_norm.weight.size(0), heads = query_key_value.weight.size(0) / (3 * d);
  const auto parts = query_key_value(x).view({2, -1, 3, heads, d}).permute({2, 0, 3, 1, 4}); // 3 x [2, heads, N, d]
  const auto lengths = lengths_of(jobs);
  const auto q = cut(query_norm(parts[0]), lengths, 2);
  const auto kv = cut(at::cat({key_norm(parts[1]), parts[2]}, 3), lengths, 2);
  std::vector<at::Tensor> attended;
  attended.reserve(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    auto& past = jobs[i].stream->attention[index];
    past = past.defined() ? at::cat({kv[i], past}, 2) : kv[i].contiguous();
    const auto y = at::scaled_dot_product_attention(q[i], past.narrow(3, 0, d), past.narrow(3, d, d));
    attended.push_back(y.transpose(1, 2).reshape({2, jobs[i].rows, heads * d}));
  }
  return attention_out(attended.size() == 1 ? attended[0] : at::cat(attended, 1));
}

at::Tensor dit::block::convolve(const at::Tensor& x, std::span<const job> jobs, std::size_t index) const {
  const auto width = x.size(2);
  const auto lengths = lengths_of(jobs);
  std::vector<at::Tensor> kept(jobs.size());
  auto causal = [&](const at::Tensor& rows, const padded_conv& conv, std::int64_t first_channel) {
    auto sequences = cut(rows.transpose(1, 2), lengths, 2);
    const auto context = conv.kernel() - 1;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const auto& past = jobs[i].stream->conv[index];
      sequences[i] = past.defined() ? at::cat({past.narrow(1, first_channel, width), sequences[i]}, 2)
                                    : at::constant_pad_nd(sequences[i], {context, 0});
      const auto last = sequences[i].slice(2, sequences[i].size(2) - context);
      kept[i] = kept[i].defined() ? at::cat({kept[i], last}, 1) : last;
    }
    const auto convolved = convolve_each(sequences, conv);
    return (convolved.size() == 1 ? convolved[0] : at::cat(convolved, 2)).transpose(1, 2);
  };
  const auto y = causal(at::mish(conv_norm(causal(x, conv_first, 0))), conv_second, width);
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].stream->conv[index] = kept[i];
  return y;
}

dit::dit(const tensor_map& weights)
    : time_first_(weights, "t_embedder.mlp.0"), time_second_(weights, "t_embedder.mlp.2"), in_(weights, "in_proj"),
      out_modulate_(weights, "final_layer.adaLN_modulation.1"), out_(weights, "final_layer.linear") {
  for (int i = 0; i < weights.count("blocks."); ++i) blocks_.emplace_back(weights, "blocks." + std::to_string(i));
}

at::Tensor dit::embed_time(const at::Tensor& t) const {
  const auto half = time_first_.weight.size(1) / 2;
  const auto frequency = at::exp(at::arange(0, half, t.options()) * (-std::log(10000.0) / static_cast<double>(half)));
  const auto angle = (t * 1000).unsqueeze(1) * frequency;
  return time_second_(at::silu(time_first_(at::cat({at::cos(angle), at::sin(angle)}, 1))));
}

dit::modulation dit::modulate(const at::Tensor& time_embedding) const {
  const auto t = at::silu(time_embedding);
  modulation result;
  for (const auto& block : blocks_) result.blocks.push_back(block.modulate(t).view({t.size(0), 9, -1}));
  result.last = out_modulate_(t).view({t.size(0), 2, -1});
  return result;
}

at::Tensor dit::run(const at::Tensor& inputs, const modulation& at_time, std::span<const job> jobs) const {
  for (const auto& job : jobs) {
    job.stream->attention.resize(depth());
    job.stream->conv.resize(depth());
  }
  auto h = in_(inputs);
  for (std::size_t n = 0; n < blocks_.size(); ++n) {
    const auto& block = blocks_[n];
    const auto m = at_time.blocks[n].unsqueeze(2).unbind(1); // 9 x [B, 1, width]: attention, feed-forward, convolution
    h = at::addcmul(h, m[2], block.attend(norm_shift_scale(h, m[0], m[1]), jobs, n));
    h = at::addcmul(h, m[8], block.convolve(norm_shift_scale(h, m[6], m[7]), jobs, n));
    h = at::addcmul(h, m[5], block.narrow(at::gelu(block.widen(norm_shift_scale(h, m[3], m[4])), "tanh")));
  }
  const auto m = at_time.last.unsqueeze(2).unbind(1);
  return out_(norm_shift_scale(h, m[0], m[1]));
}

} // namespace parley::inference::speech
