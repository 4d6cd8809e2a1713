#include "inference/vocoder/dit.hpp"

#include "inference/kernels/attention.hpp"
#include "inference/vocoder/ragged.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <stdexcept>
#include <utility>

namespace parley::inference::speech {
namespace {

at::Tensor norm_shift_scale(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale) {
  return at::addcmul(shift, at::layer_norm(x, {x.size(-1)}, {}, {}, 1e-6), scale + 1);
}

/// softmax(q k) v for sequences that follow each other in q [2, N, heads, d]: [2, N, heads * d].
at::Tensor attend_to_histories(const at::Tensor& q, std::span<const std::int64_t> lengths,
                               std::span<const kv_history* const> seen) {
  const auto rows = q.size(1), heads = q.size(2), d = q.size(3), width = heads * d;
  if (!q.is_cpu() || q.scalar_type() != at::kFloat || d > cpu::largest_head) {
    std::vector<at::Tensor> each;
    const auto queries = cut(q.transpose(1, 2), lengths, 2);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const auto kv = seen[i]->joined();
      const auto y = at::scaled_dot_product_attention(queries[i], kv.narrow(3, 0, d), kv.narrow(3, d, d));
      each.push_back(y.transpose(1, 2).reshape({2, lengths[i], width}));
    }
    return at::cat(each, 1);
  }
  auto result = at::empty({2, rows, width}, q.options());
  const auto queries = q.contiguous();
  const auto* from = queries.const_data_ptr<float>();
  auto* to = result.mutable_data_ptr<float>();
  std::vector<std::int64_t> begins{0};
  for (const auto length : lengths) begins.push_back(begins.back() + length);
  const auto lanes = std::ssize(seen) * heads * 2;
  at::parallel_for(0, lanes, 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<cpu::head_piece> pieces;
    for (auto lane = first; lane < last; ++lane) {
      const auto i = static_cast<std::size_t>(lane / (2 * heads));
      const auto guidance = lane / heads % 2, head = lane % heads;
      pieces.clear();
      for (const auto& piece : seen[i]->pieces()) {
        const auto* keys = piece.const_data_ptr<float>() + guidance * piece.stride(0) + head * piece.stride(1);
        pieces.push_back({keys, keys + d, piece.size(2), piece.stride(2)});
      }
      const auto place = (guidance * rows + begins[i]) * width + head * d;
      cpu::attend({from + place, width}, lengths[i], pieces, d, {to + place, width});
    }
  });
  return result;
}

} // namespace

dit::causal_conv::causal_conv(const tensor_map& weights, const std::string& name) : bias(weights.find(name + ".bias")) {
  const auto stored = weights.at(name + ".weight", {-1, -1, -1});
  if (stored.size(2) != context_rows + 1)
    throw std::runtime_error(weights.origin() + ": " + name + " looks at a different number of rows than expected");
  weight = stored.transpose(1, 2).flatten(1).contiguous();
}

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

/// x [2, N, width]. No positions and no mask: a chunk sees itself and everything in its cache.
at::Tensor dit::block::attend(const at::Tensor& x, const places& at, std::size_t index) const {
  const auto d = query_norm.weight.size(0), heads = query_key_value.weight.size(0) / (3 * d);
  const auto parts = query_key_value(x).view({2, -1, 3, heads, d}).unbind(2); // 3 x [2, N, heads, d]
  const auto q = query_norm(parts[0]);
  const auto kv = cut(at::cat({key_norm(parts[1]), parts[2]}, 3).transpose(1, 2), at.lengths, 2);
  std::vector<const kv_history*> seen;
  for (std::size_t i = 0; i < at.jobs.size(); ++i) {
    auto& past = at.jobs[i].stream->attention[index];
    past.push_front(kv[i].contiguous());
    seen.push_back(&past);
  }
  return attention_out(attend_to_histories(q, at.lengths, seen));
}

/// x [2, N, width]. Each row is computed from the window that ends with it; rows of all sequences form one product.
at::Tensor dit::block::convolve(const at::Tensor& x, const places& at, std::size_t index) const {
  const auto width = x.size(2);
  auto causal = [&](const at::Tensor& rows, const causal_conv& conv, std::int64_t first_channel) {
    const auto fresh = cut(rows, at.lengths, 1);
    std::vector<at::Tensor> sequences;
    for (std::size_t i = 0; i < at.jobs.size(); ++i) {
      const auto& past = at.jobs[i].stream->conv[index];
      sequences.push_back(past.defined() ? past.narrow(1, first_channel, width).transpose(1, 2)
                                         : at::zeros({2, context_rows, width}, rows.options()));
      sequences.push_back(fresh[i]);
    }
    const auto all = at::cat(sequences, 1).flatten(0, 1);
    const auto windows = all.index_select(0, at.windows).view({2, -1, (context_rows + 1) * width});
    return std::pair(at::linear(windows, conv.weight, conv.bias), all.index_select(0, at.ends).view({2, -1, width}));
  };
  const auto [between, first_ends] = causal(x, conv_first, 0);
  const auto [y, second_ends] = causal(at::mish(conv_norm(between)), conv_second, width);
  const auto ends = at::cat({first_ends, second_ends}, 2).transpose(1, 2); // [2, 2 * width, jobs * context]
  for (std::size_t i = 0; i < at.jobs.size(); ++i)
    at.jobs[i].stream->conv[index] =
        ends.narrow(2, static_cast<std::int64_t>(i) * context_rows, context_rows).contiguous();
  return y;
}

dit::places::places(std::span<const job> sequences, at::Device device) : jobs(sequences) {
  std::int64_t total = 0, begin = 0;
  for (const auto& job : jobs) {
    lengths.push_back(job.rows);
    total += job.rows + context_rows;
  }
  std::vector<std::int64_t> window_rows, end_rows;
  for (std::int64_t guidance = 0; guidance < 2; ++guidance)
    for (const auto& job : jobs) {
      for (std::int64_t row = 0; row < job.rows * (context_rows + 1); ++row)
        window_rows.push_back(begin + row / (context_rows + 1) + row % (context_rows + 1));
      for (std::int64_t row = 0; row < context_rows; ++row) end_rows.push_back(begin + job.rows + row);
      begin += job.rows + context_rows;
    }
  windows = at::tensor(window_rows, at::kLong).to(device);
  ends = at::tensor(end_rows, at::kLong).to(device);
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
  const places at(jobs, inputs.device());
  auto h = in_(inputs);
  for (std::size_t n = 0; n < blocks_.size(); ++n) {
    const auto& block = blocks_[n];
    const auto m = at_time.blocks[n].unsqueeze(2).unbind(1); // 9 x [B, 1, width]: attention, feed-forward, convolution
    h = at::addcmul(h, m[2], block.attend(norm_shift_scale(h, m[0], m[1]), at, n));
    h = at::addcmul(h, m[8], block.convolve(norm_shift_scale(h, m[6], m[7]), at, n));
    h = at::addcmul(h, m[5], block.narrow(at::gelu(block.widen(norm_shift_scale(h, m[3], m[4])), "tanh")));
  }
  const auto m = at_time.last.unsqueeze(2).unbind(1);
  return out_(norm_shift_scale(h, m[0], m[1]));
}

} // namespace parley::inference::speech
