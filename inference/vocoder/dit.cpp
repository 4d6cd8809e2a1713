#include "inference/vocoder/dit.hpp"

#include "inference/kernels/attention.hpp"
#include "inference/kernels/parallel.hpp"
#include "inference/speech/ragged.hpp"
#include "inference/vocoder/dit_rows.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <stdexcept>
#include <utility>

namespace parley::inference::speech {
namespace {

/// softmax(q k) v for sequences that follow each other in q [2, N, heads, d], one after another: [2, N, heads * d].
at::Tensor attend_one_by_one(const at::Tensor& q, std::span<const std::int64_t> lengths,
                             std::span<const kv_history* const> seen) {
  const auto d = q.size(3);
  std::vector<at::Tensor> each;
  const auto queries = cut(q.transpose(1, 2), lengths, 2);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto kv = seen[i]->joined();
    const auto y = at::scaled_dot_product_attention(queries[i], kv.narrow(3, 0, d), kv.narrow(3, d, d));
    each.push_back(y.transpose(1, 2).reshape({2, lengths[i], q.size(2) * d}));
  }
  return at::cat(each, 1);
}

/// The same with our own loops, in float32 on the CPU.
at::Tensor attend_by_hand(const at::Tensor& q, std::span<const std::int64_t> lengths,
                          std::span<const kv_history* const> seen) {
  const auto rows = q.size(1), heads = q.size(2), d = q.size(3), width = heads * d;
  auto result = at::empty({2, rows, width}, q.options());
  const auto queries = q.contiguous();
  const auto* from = queries.const_data_ptr<float>();
  auto* to = result.mutable_data_ptr<float>();
  std::vector<std::int64_t> begins{0};
  for (const auto length : lengths) begins.push_back(begins.back() + length);
  const auto lanes = std::ssize(seen) * heads * 2;
  cpu::parallel_for(0, lanes, 1, [&](std::int64_t first, std::int64_t last) {
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

window_conv read_conv(const tensor_map& weights, const std::string& name, std::int64_t kernel) {
  const auto stored = weights.at(name + ".weight", {-1, -1, -1});
  if (stored.size(2) != kernel)
    throw std::runtime_error(weights.origin() + ": " + name + " looks at a different number of rows than expected");
  return {stored, weights.find(name + ".bias")};
}

} // namespace

dit::block::block(const tensor_map& weights, const std::string& name)
    : modulate(weights, name + ".adaLN_modulation.1"), query_norm(weights, name + ".attn.q_norm", 1e-5),
      key_norm(weights, name + ".attn.k_norm", 1e-5), attention_out(weights, name + ".attn.proj"),
      conv_first(read_conv(weights, name + ".conv.block.1", context_rows + 1)),
      conv_second(read_conv(weights, name + ".conv.block.6", context_rows + 1)),
      conv_norm(weights, name + ".conv.block.3", 1e-5), widen(weights, name + ".mlp.fc1"),
      narrow(weights, name + ".mlp.fc2") {
  const linear q(weights, name + ".attn.to_q"), k(weights, name + ".attn.to_k"), v(weights, name + ".attn.to_v");
  query_key_value.weight = at::cat({q.weight, k.weight, v.weight}, 0);
  const auto head = query_norm.weight.numel();
  if (head == 0 || query_key_value.weight.size(0) % (3 * head) != 0)
    throw std::runtime_error(weights.origin() + ": " + name + " has heads of a different size than its attention");
  if (q.bias.defined()) query_key_value.bias = at::cat({q.bias, k.bias, v.bias}, 0);
}

/// x [2, N, width]. No positions and no mask: a chunk sees itself and everything in its cache.
at::Tensor dit::block::attend(const at::Tensor& x, const places& at, std::span<const job> jobs,
                              std::size_t index) const {
  const auto parts = query_key_value(x).view({2, -1, 3, heads(), head_dim()}).unbind(2); // 3 x [2, N, heads, d]
  const auto q = query_norm(parts[0]);
  const auto kv = cut(at::cat({key_norm(parts[1]), parts[2]}, 3).transpose(1, 2), at.lengths_, 2);
  std::vector<const kv_history*> seen;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    auto& past = jobs[i].stream->attention[index];
    past.push_front(kv[i].contiguous());
    seen.push_back(&past);
  }
  const auto walkable = q.is_cpu() && q.scalar_type() == at::kFloat && q.size(3) <= cpu::largest_head;
  return attention_out(walkable ? attend_by_hand(q, at.lengths_, seen) : attend_one_by_one(q, at.lengths_, seen));
}

/// x [2, N, width]. Each row is computed from the window that ends with it; rows of all sequences form one product.
at::Tensor dit::block::convolve(const at::Tensor& x, const places& at, std::span<const job> jobs,
                                std::size_t index) const {
  const auto width = x.size(2);
  std::vector<at::Tensor> contexts;
  for (const auto& job : jobs) {
    const auto& past = job.stream->conv[index];
    contexts.push_back(past.defined() ? past : at::zeros({2, context_rows, 2 * width}, x.options()));
  }
  const auto before = at::cat(contexts, 1);
  auto causal = [&](const at::Tensor& fresh, const window_conv& conv, std::int64_t first_channel) {
    const auto all = at::cat({before.narrow(2, first_channel, width), fresh}, 1).flatten(0, 1);
    return std::pair(conv(all, at.windows_).view({2, -1, width}), all.index_select(0, at.ends_).view({2, -1, width}));
  };
  const auto [between, first_ends] = causal(x, conv_first, 0);
  const auto [y, second_ends] = causal(at::mish(conv_norm(between)), conv_second, width);
  const auto ends = at::cat({first_ends, second_ends}, 2).split(context_rows, 1);
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].stream->conv[index] = ends[i];
  return y;
}

at::Tensor dit::block::feed(const at::Tensor& x) const {
  return narrow(at::gelu(widen(x), "tanh"));
}

dit::places::places(std::span<const job> sequences, packed_upload& numbers) {
  for (const auto& job : sequences) lengths_.push_back(job.rows);
  const auto rows = find_windows(context_rows, lengths_);
  window_part_ = numbers.add(rows.windows);
  end_part_ = numbers.add(rows.ends);
}

void dit::places::use(const packed_upload& sent) {
  windows_ = sent[window_part_];
  ends_ = sent[end_part_];
}

/// Not `modulate`, whose results are converted: each is used many times.
void dit::block::convert(at::ScalarType dtype) {
  for (auto* product : {&query_key_value, &attention_out, &widen, &narrow}) product->convert(dtype);
  for (auto* norm : {&query_norm, &key_norm, &conv_norm}) norm->convert(dtype);
  for (auto* product : {&conv_first, &conv_second}) product->convert(dtype);
}

dit::dit(const tensor_map& weights)
    : time_first_(weights, "t_embedder.mlp.0"), time_second_(weights, "t_embedder.mlp.2"), in_(weights, "in_proj"),
      dtype_(in_.weight.scalar_type()), out_modulate_(weights, "final_layer.adaLN_modulation.1"),
      out_(weights, "final_layer.linear") {
  for (int i = 0; i < weights.count("blocks."); ++i) blocks_.emplace_back(weights, "blocks." + std::to_string(i));
}

void dit::use_bfloat16() {
  if (!in_.weight.is_cpu()) {
    dtype_ = at::kBFloat16;
    for (auto& block : blocks_) block.convert(dtype_);
    return;
  }
  for (auto& block : blocks_) {
    for (auto* product : {&block.query_key_value, &block.attention_out, &block.widen, &block.narrow})
      product->use_bfloat16();
    for (auto* product : {&block.conv_first, &block.conv_second}) product->use_bfloat16();
  }
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
  for (const auto& block : blocks_) {
    const auto parts = block.modulate(t).view({t.size(0), 9, -1});
    for (const auto scale : {1, 4, 7}) parts.select(1, scale).add_(1);
    result.blocks.push_back(parts.to(dtype_).unsqueeze(2).unbind(1));
  }
  const auto last = out_modulate_(t).view({t.size(0), 2, -1});
  last.select(1, 1).add_(1);
  result.last = last.unsqueeze(2).unbind(1);
  return result;
}

at::Tensor dit::run(const at::Tensor& inputs, const modulation& at_time, std::span<const job> jobs) const {
  packed_upload numbers;
  places at(jobs, numbers);
  numbers.send(inputs.device());
  at.use(numbers);
  return run(inputs, at_time, jobs, at);
}

at::Tensor dit::run(const at::Tensor& inputs, const modulation& at_time, std::span<const job> jobs,
                    const places& at) const {
  const kv_history nothing(2);
  for (const auto& job : jobs) {
    job.stream->attention.resize(depth(), nothing);
    job.stream->conv.resize(depth());
  }
  auto h = in_(inputs);
  for (std::size_t n = 0; n < blocks_.size(); ++n) {
    const auto& block = blocks_[n];
    const auto& m = at_time.blocks[n];
    h = at::addcmul(h, m[2], block.attend(norm_shift_scale(h, m[0], m[1]), at, jobs, n));
    h = at::addcmul(h, m[8], block.convolve(norm_shift_scale(h, m[6], m[7]), at, jobs, n));
    h = at::addcmul(h, m[5], block.feed(norm_shift_scale(h, m[3], m[4])));
  }
  return out_(norm_shift_scale(h, at_time.last[0], at_time.last[1]));
}

} // namespace parley::inference::speech
