#include "inference/kernels/varlen_attention.hpp"

#include "inference/kernels/attention.hpp"
#include "inference/kernels/packed_upload.hpp"
#include "inference/kernels/parallel.hpp"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace parley::inference {

namespace {

std::atomic<bool> loop_preferred = false;

/// Memory-efficient attention returns its sums per run, with the number of rows rounded up to this (kAlignLSE in
/// mem_eff_attention/kernel_forward.h).
constexpr std::int64_t weight_alignment = 32;

std::int64_t round_up(std::int64_t n, std::int64_t to) {
  return (n + to - 1) / to * to;
}

bool has_kernel(const char* name, c10::DispatchKey key) {
  const auto op = c10::Dispatcher::singleton().findSchema({name, ""});
  return op && op->hasKernelForDispatchKey(key);
}

bool has_fused_kernels(at::Device device) {
  const auto key = c10::computeDispatchKey(std::nullopt, std::nullopt, device);
  return has_kernel("aten::_flash_attention_forward", key) && has_kernel("aten::_efficient_attention_forward", key);
}

/// [rows, kv_heads, head_dim] → [kv_heads, group, rows, head_dim], every key once.
at::Tensor spread(const at::Tensor& x, std::int64_t group) {
  return x.permute({1, 0, 2}).unsqueeze(1).expand({x.size(1), group, x.size(0), x.size(2)});
}

at::Tensor hidden_keys(const attention_run& r, bool causal, at::Device device) {
  if (!causal || r.queries == 1) return {};
  return at::ones({r.queries, r.keys}, at::TensorOptions(at::kBool).device(device)).triu_(r.keys - r.queries + 1);
}

/// Scores are float32, as in fused attention: rounded to bfloat16, a score of 100 is off by up to a quarter.
std::pair<at::Tensor, at::Tensor> plain(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values,
                                        const at::Tensor& hidden) {
  auto scores = at::matmul(q.to(at::kFloat), keys.to(at::kFloat).transpose(-1, -2))
                    .div_(std::sqrt(static_cast<double>(q.size(-1))));
  if (hidden.defined()) scores.masked_fill_(hidden, -INFINITY);
  const auto weight = scores.logsumexp(-1);
  return {at::matmul((scores - weight.unsqueeze(-1)).exp_().to(values.scalar_type()), values), weight};
}

} // namespace

varlen_attention::varlen_attention(std::span<const attention_run> runs, mask which, const bounds& at_most)
    : causal_(false) {
  for (const auto& r : runs) {
    if (r.queries == 0) continue;
    if (r.queries < 0 || r.first_key < 0 || r.keys < (which == mask::causal ? r.queries : 1))
      throw std::invalid_argument("attention: a row of queries would see no key");
    runs_.push_back(r);
    queries_ += r.queries;
    most_queries_ = std::max(most_queries_, r.queries);
    most_keys_ = std::max(most_keys_, r.keys);
    past_keys_ = std::max(past_keys_, r.first_key + r.keys);
  }
  const auto bounded = at_most.queries > 0;
  if (bounded) {
    if (most_queries_ > at_most.queries || most_keys_ > at_most.keys)
      throw std::invalid_argument("attention: a run is longer than the plan allows");
    most_queries_ = at_most.queries;
    most_keys_ = at_most.keys;
  }
  causal_ = which == mask::causal && most_queries_ > 1;
  const auto longer = std::ranges::find_if(runs_, [](const auto& r) { return r.queries > 1; });
  if (!bounded && longer != runs_.end()) singles_ = longer - runs_.begin();
  auto add = [this](std::int64_t n) { numbers_.push_back(static_cast<std::int32_t>(n)); };
  auto start = std::int64_t{0};
  for (const auto& r : runs_) add(std::exchange(start, start + r.queries));
  add(start);
  for (const auto& r : runs_) add(r.first_key);
  add(past_keys_); // not read: the lengths are given
  for (const auto& r : runs_) add(r.keys);
  for (auto later = singles_; const auto& r : std::span(runs_).subspan(static_cast<std::size_t>(singles_)))
    add(std::exchange(later, later + r.queries) - singles_);
  add(queries_ - singles_);
  const auto stride = round_up(most_queries_, weight_alignment);
  for (auto begin = std::int64_t{0}; const auto& r : runs_) {
    for (auto i = std::int64_t{0}; i < r.queries; ++i) add(begin + i);
    begin += stride;
  }
}

void varlen_attention::use(at::Tensor numbers) {
  if (numbers.size(0) != std::ssize(numbers_) || numbers.scalar_type() != at::kInt)
    throw std::invalid_argument("attention: these are not the plan's numbers");
  const auto count = std::ssize(runs_);
  query_starts_ = numbers.narrow(0, 0, count + 1);
  first_keys_ = numbers.narrow(0, count + 1, count + 1);
  key_counts_ = numbers.narrow(0, 2 * (count + 1), count);
  later_starts_ = numbers.narrow(0, 3 * count + 2, count - singles_ + 1);
  weight_rows_ = numbers.narrow(0, 4 * count + 3 - singles_, queries_);
  fused_ = has_fused_kernels(numbers.device());
}

void varlen_attention::upload(at::Device device) {
  if (device.is_cpu()) return;
  packed_upload numbers;
  const auto all = numbers.add(numbers_);
  numbers.send(device);
  use(numbers[all]);
}

bool varlen_attention::is_one_call(at::Device device, at::ScalarType dtype) {
  // LibTorch's memory-efficient attention knows float32 and the half precisions.
  return !loop_preferred && !device.is_cpu() && dtype != at::kDouble && has_fused_kernels(device);
}

void varlen_attention::prefer_loop(bool loop) {
  loop_preferred = loop;
}

void varlen_attention::check(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values) const {
  const auto fits = query.dim() == 3 && keys.dim() == 3 && query.size(0) == queries_ &&
                    keys.sizes() == values.sizes() && keys.size(0) >= past_keys_ && keys.size(2) == query.size(2) &&
                    query.size(1) % keys.size(1) == 0;
  if (!fits) throw std::invalid_argument("attention: the tensors do not fit the plan");
  if (!query.is_cpu() && !first_keys_.defined())
    throw std::invalid_argument("attention: the plan is not on this device");
}

at::Tensor varlen_attention::run(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                                 at::Tensor* logsumexp) const {
  check(query, keys, values);
  const auto dtype = query.scalar_type();
  const auto head_dim = query.size(2);
  if (loop_preferred || runs_.empty()) return loop(query, keys, values, logsumexp);
  if (query.is_cpu()) {
    const auto adjacent = [](const at::Tensor& x) { return x.stride(1) == x.size(2) && x.stride(2) == 1; };
    const auto walkable = !logsumexp && head_dim <= cpu::largest_head && adjacent(keys) && adjacent(values) &&
                          keys.stride(0) == values.stride(0);
    if (walkable && dtype == at::kFloat) return on_cpu<float>(query, keys, values);
    if (walkable && dtype == at::kBFloat16) return on_cpu<cpu::bfloat16>(query, keys, values);
    return loop(query, keys, values, logsumexp);
  }
  if (!fused_ || dtype == at::kDouble) return loop(query, keys, values, logsumexp);
  // mha_varlen_fwd in flash_attn/flash_api.cpp: fp16 or bf16; head_dim a multiple of 8, at most 256.
  const auto half = dtype == at::kBFloat16 || dtype == at::kHalf;
  return half && head_dim % 8 == 0 && head_dim <= 256 ? flash(query, keys, values, logsumexp)
                                                      : efficient(query, keys, values, logsumexp);
}

/// As of LibTorch 2.11 and 2.13, mha_varlen_fwd (aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp):
/// starts and counts are contiguous int32; of query, keys and values only the last dimension must be contiguous;
/// grouped heads are native; causal is aligned to the bottom right. A run's keys begin at cu_seqlens_k[b] times the
/// row's stride and are seqused_k[b] many, whenever that is given (BlockInfo in block_info.h), so first rows need not
/// rise. If no run has more than one query, the heads of a group become the rows of each run and the keys are split
/// among thread blocks: every run must then have exactly one query, as is the case here. A query without keys would get
/// zeros and a logsumexp of +inf. The logsumexp is float32 [heads, queries], in either case.
at::Tensor varlen_attention::flash(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                                   at::Tensor* lse) const {
  if (singles_ > 0) return flash_in_two(query, keys, values, lse);
  auto result =
      at::_flash_attention_forward(query, keys, values, query_starts_, first_keys_, most_queries_, most_keys_, 0.0,
                                   causal_, false, std::nullopt, std::nullopt, std::nullopt, key_counts_);
  if (lse) *lse = std::get<1>(result).t();
  return std::get<0>(result);
}

/// One longer run beside runs of one query would keep the kernel from packing the heads of a group, which then read their
/// keys once each, and from splitting the keys: four times as slow on an H200.
at::Tensor varlen_attention::flash_in_two(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                                          at::Tensor* lse) const {
  const auto later = std::ssize(runs_) - singles_;
  const auto ones =
      at::_flash_attention_forward(query.narrow(0, 0, singles_), keys, values, query_starts_.narrow(0, 0, singles_ + 1),
                                   first_keys_.narrow(0, 0, singles_ + 1), 1, most_keys_, 0.0, false, false,
                                   std::nullopt, std::nullopt, std::nullopt, key_counts_.narrow(0, 0, singles_));
  const auto rest = at::_flash_attention_forward(query.narrow(0, singles_, queries_ - singles_), keys, values,
                                                 later_starts_, first_keys_.narrow(0, singles_, later + 1),
                                                 most_queries_, most_keys_, 0.0, causal_, false, std::nullopt,
                                                 std::nullopt, std::nullopt, key_counts_.narrow(0, singles_, later));
  if (lse) *lse = at::cat({std::get<1>(ones).t(), std::get<1>(rest).t()});
  return at::cat({std::get<0>(ones), std::get<0>(rest)});
}

/// As of LibTorch 2.11 and 2.13, _efficient_attention_forward (aten/src/ATen/native/transformers/cuda/attention.cu) and
/// mem_eff_attention/kernel_forward.h: tensors are [1, rows, heads, head_dim] with equal numbers of heads; starts and
/// counts are contiguous int32. A run's keys begin at cu_seqlens_k[b] and are seqlen_k[b] many, if that is given, so
/// first rows need not rise. Mask type 2 is causal from the bottom right. The logsumexp is float32 [runs, heads, longest
/// run rounded up to 32]; for a query without keys it would be 0, not -inf.
at::Tensor varlen_attention::efficient(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                                       at::Tensor* lse) const {
  constexpr std::int64_t no_mask = 0, causal_from_bottom_right = 2;
  const auto kv_heads = keys.size(1), group = query.size(1) / kv_heads, count = std::ssize(runs_);
  const auto grouped = query.view({queries_, kv_heads, group, query.size(2)});
  std::vector<at::Tensor> means, weights; // one for each head of a group
  for (auto i = std::int64_t{0}; i < group; ++i) {
    auto result = at::_efficient_attention_forward(
        grouped.select(2, i).unsqueeze(0), keys.unsqueeze(0), values.unsqueeze(0), std::nullopt, query_starts_,
        first_keys_, most_queries_, most_keys_, 0.0, causal_ ? causal_from_bottom_right : no_mask, lse != nullptr,
        std::nullopt, key_counts_);
    means.push_back(std::get<0>(result).squeeze(0));
    weights.push_back(std::get<1>(result));
  }
  if (lse) {
    const auto each =
        group == 1 ? weights.front().unsqueeze(2) : at::stack(weights, 2); // [runs, kv_heads, group, rows]
    *lse = each.permute({0, 3, 1, 2}).reshape({count * each.size(3), kv_heads * group}).index_select(0, weight_rows_);
  }
  return group == 1 ? means.front() : at::stack(means, 2).flatten(1, 2);
}

template<class Number>
at::Tensor varlen_attention::on_cpu(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values) const {
  const auto heads = query.size(1), head_dim = query.size(2), kv_heads = keys.size(1), group = heads / kv_heads;
  const auto key_stride = keys.stride(0), stride = heads * head_dim;
  auto attended = at::empty({queries_, heads, head_dim}, query.options());
  // Pages in order: the keys of a run follow one another.
  std::vector<std::int32_t> pages(static_cast<std::size_t>(most_keys_ / cpu::largest_page + 1));
  for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<std::int32_t>(i);
  std::vector<std::int64_t> starts;
  for (auto start = std::int64_t{0}; const auto& r : runs_) starts.push_back(std::exchange(start, start + r.queries));
  const auto dense = query.contiguous();
  const auto* from = static_cast<const Number*>(dense.const_data_ptr());
  const auto* all_keys = static_cast<const Number*>(keys.const_data_ptr());
  const auto* all_values = static_cast<const Number*>(values.const_data_ptr());
  auto* to = static_cast<Number*>(attended.mutable_data_ptr());
  cpu::parallel_for(0, std::ssize(runs_) * kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto n = begin; n < end; ++n) {
      const auto& r = runs_[static_cast<std::size_t>(n / kv_heads)];
      const auto head = n % kv_heads, first = r.first_key * key_stride + head * head_dim;
      const cpu::paged_head<Number> past{all_keys + first, all_values + first, pages.data(), cpu::largest_page,
                                         key_stride};
      const auto place = (starts[static_cast<std::size_t>(n / kv_heads)] * heads + head * group) * head_dim;
      if (causal_ || r.queries == 1) {
        cpu::attend(from + place, past, {r.queries, r.keys - r.queries, group, stride}, head_dim, to + place);
        continue;
      }
      for (auto row = std::int64_t{0}; row < r.queries; ++row)
        cpu::attend(from + place + row * stride, past, {1, r.keys - 1, group, stride}, head_dim,
                    to + place + row * stride);
    }
  });
  return attended;
}

at::Tensor varlen_attention::loop(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                                  at::Tensor* lse) const {
  const auto heads = query.size(1), head_dim = query.size(2), kv_heads = keys.size(1), group = heads / kv_heads;
  std::vector<at::Tensor> means, weights;
  for (auto start = std::int64_t{0}; const auto& r : runs_) {
    const auto q = query.narrow(0, start, r.queries)
                       .reshape({r.queries, kv_heads, group, head_dim})
                       .permute({1, 2, 0, 3}); // [kv_heads, group, rows, head_dim]
    const auto k = spread(keys.narrow(0, r.first_key, r.keys), group);
    const auto v = spread(values.narrow(0, r.first_key, r.keys), group);
    const auto hidden = hidden_keys(r, causal_, query.device());
    at::Tensor mean;
    if (lse) {
      at::Tensor weight;
      std::tie(mean, weight) = plain(q, k, v, hidden);
      weights.push_back(weight.permute({2, 0, 1}).reshape({r.queries, heads}));
    } else {
      std::optional<at::Tensor> seen;
      if (hidden.defined()) seen = hidden.logical_not();
      mean = at::scaled_dot_product_attention(q, k, v, seen);
    }
    means.push_back(mean.permute({2, 0, 1, 3}).reshape({r.queries, heads, head_dim}));
    start += r.queries;
  }
  if (lse) *lse = weights.empty() ? at::empty({0, heads}, query.options().dtype(at::kFloat)) : at::cat(weights);
  return means.empty() ? at::empty({0, heads, head_dim}, query.options()) : at::cat(means);
}

} // namespace parley::inference
