#include "tests/accelerator/pretend_device.hpp"
#include "tests/accelerator/pretend_kernels.hpp"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

// LibTorch's two fused operators for sequences of different lengths, which it has for CUDA only. They do what its CUDA
// code does with what they are given, and are strict where a GPU would read other memory or other numbers.
namespace parley::inference::testing {

namespace {

/// A call's arguments, by their names: LibTorch's versions differ in which ones there are.
class named_arguments {
public:
  named_arguments(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    const auto& all = op.schema().arguments();
    for (std::size_t i = 0; i < all.size(); ++i) values_[all[i].name()] = stack[stack.size() - all.size() + i];
    stack.erase(stack.end() - static_cast<std::ptrdiff_t>(all.size()), stack.end());
  }

  const at::Tensor& tensor(const char* name) const { return values_.at(name).toTensor(); }
  std::int64_t number(const char* name) const { return values_.at(name).toInt(); }
  bool flag(const char* name) const { return values_.at(name).toBool(); }

  /// Parley's calls leave these out; what is given is not computed.
  void require_absent(std::initializer_list<const char*> names) const {
    for (const auto* name : names)
      TORCH_CHECK(!values_.contains(name) || values_.at(name).isNone(), "the pretend device: attention with ", name);
    TORCH_CHECK(values_.at("dropout_p").toDouble() == 0, "the pretend device: attention with dropout");
  }

private:
  std::map<std::string, c10::IValue> values_;
};

struct sequences {
  std::vector<std::int32_t> query_starts, first_keys, key_counts;

  std::int64_t count() const { return std::ssize(key_counts); }
};

std::vector<std::int32_t> integers(const at::Tensor& t, std::int64_t count, memory_access& access) {
  TORCH_CHECK(t.device() == pretend_device() && t.scalar_type() == at::kInt && t.dim() == 1 && t.is_contiguous() &&
                  t.size(0) == count,
              "the pretend device: attention: starts and lengths are contiguous int32 on the device");
  const auto host = as_host(t, access);
  const auto* first = host.const_data_ptr<std::int32_t>();
  return {first, first + count};
}

/// `query`, `keys`, `values`: [rows, heads, head_dim].
void check(const sequences& of, const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
           std::int64_t most_queries, std::int64_t most_keys) {
  for (const auto* t : {&query, &keys, &values}) {
    TORCH_CHECK(t->device() == pretend_device(), "the pretend device: attention of two devices");
    TORCH_CHECK(t->scalar_type() == query.scalar_type(), "the pretend device: attention of two dtypes");
    TORCH_CHECK(t->stride(-1) == 1, "the pretend device: attention: the last dimension must be contiguous");
  }
  TORCH_CHECK(of.count() > 0, "the pretend device: attention of no sequence");
  TORCH_CHECK(of.query_starts.front() == 0 && of.query_starts.back() == query.size(0),
              "the pretend device: attention: these are not all rows of the query");
  for (std::size_t i = 0; i < of.key_counts.size(); ++i) {
    const auto queries = of.query_starts[i + 1] - of.query_starts[i], first = of.first_keys[i];
    TORCH_CHECK(queries >= 0 && queries <= most_queries, "the pretend device: attention: more rows than promised");
    TORCH_CHECK(of.key_counts[i] >= 1 && of.key_counts[i] <= most_keys,
                "the pretend device: attention: no keys, or more than promised");
    TORCH_CHECK(first >= 0 && first + of.key_counts[i] <= keys.size(0) && keys.size(0) == values.size(0),
                "the pretend device: attention reads behind the last key");
  }
}

/// Means [rows, heads, head_dim] in the query's dtype and logsumexp [rows, heads], all on the host. The last query of a
/// causal sequence sees all keys.
std::pair<at::Tensor, at::Tensor> attend(const sequences& of, const at::Tensor& query, const at::Tensor& keys,
                                         const at::Tensor& values, bool causal) {
  const auto group = query.size(1) / keys.size(1);
  auto mean = at::empty(query.sizes(), query.options());
  auto weight = at::empty({query.size(0), query.size(1)}, at::kFloat);
  for (std::size_t i = 0; i < of.key_counts.size(); ++i) {
    const auto begin = of.query_starts[i], queries = of.query_starts[i + 1] - begin, count = of.key_counts[i];
    if (queries == 0) continue;
    const auto some = [&](const at::Tensor& x) {
      return x.narrow(0, of.first_keys[i], count).to(at::kFloat).repeat_interleave(group, 1).transpose(0, 1);
    };
    auto scores = at::matmul(query.narrow(0, begin, queries).to(at::kFloat).transpose(0, 1), some(keys).transpose(1, 2))
                      .div_(std::sqrt(static_cast<double>(query.size(2))));
    if (causal) scores.masked_fill_(at::ones({queries, count}, at::kBool).triu_(count - queries + 1), -INFINITY);
    mean.narrow(0, begin, queries).copy_(at::matmul(scores.softmax(-1), some(values)).transpose(0, 1));
    weight.narrow(0, begin, queries).copy_(scores.logsumexp(-1).t());
  }
  return {mean, weight};
}

void flash_attention(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const named_arguments given(op, *stack);
  given.require_absent({"scale", "window_size_left", "window_size_right", "alibi_slopes", "block_table", "num_splits"});
  const auto &query = given.tensor("query"), &keys = given.tensor("key"), &values = given.tensor("value");
  TORCH_CHECK(query.scalar_type() == at::kHalf || query.scalar_type() == at::kBFloat16,
              "the pretend device: flash attention is for fp16 and bf16");
  TORCH_CHECK(query.dim() == 3 && keys.dim() == 3 && keys.sizes() == values.sizes() && query.size(2) == keys.size(2) &&
                  query.size(1) % keys.size(1) == 0 && query.size(2) % 8 == 0 && query.size(2) <= 256,
              "the pretend device: flash attention of these shapes");
  memory_access access;
  const auto count = given.tensor("cum_seq_q").numel() - 1, most_queries = given.number("max_q");
  const sequences of{integers(given.tensor("cum_seq_q"), count + 1, access),
                     integers(given.tensor("cum_seq_k"), count + 1, access),
                     integers(given.tensor("seqused_k"), count, access)};
  check(of, query, keys, values, most_queries, given.number("max_k"));
  // With one query each, the heads of a group become rows: a run without a query would shift all others.
  TORCH_CHECK(most_queries > 1 || query.size(0) == count, "the pretend device: flash attention: one query each");
  count_kernel("aten::_flash_attention_forward");
  const auto [mean, weight] = attend(of, as_host(query, access), as_host(keys, access), as_host(values, access),
                                     given.flag("is_causal") && most_queries > 1);
  const auto nothing = at::empty({0}, query.options());
  torch::jit::push(*stack, to_device(mean, access), to_device(weight.t().contiguous(), access), nothing, nothing,
                   nothing);
}

void efficient_attention(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const named_arguments given(op, *stack);
  given.require_absent({"bias", "scale", "window_size"});
  const auto &query = given.tensor("query"), &keys = given.tensor("key"), &values = given.tensor("value");
  TORCH_CHECK(query.scalar_type() == at::kFloat || query.scalar_type() == at::kHalf ||
                  query.scalar_type() == at::kBFloat16,
              "the pretend device: memory-efficient attention is for fp32, fp16 and bf16");
  TORCH_CHECK(query.dim() == 4 && query.size(0) == 1 && keys.dim() == 4 && keys.sizes() == values.sizes() &&
                  query.size(2) == keys.size(2) && query.size(3) == keys.size(3),
              "the pretend device: memory-efficient attention of these shapes");
  for (const auto* t : {&query, &keys, &values})
    for (const auto dim : {1, 2})
      TORCH_CHECK(t->stride(dim) * static_cast<std::int64_t>(t->element_size()) % 16 == 0 &&
                      t->storage_offset() % 4 == 0,
                  "the pretend device: memory-efficient attention: not aligned to 16 bytes");
  memory_access access;
  const auto count = given.tensor("cu_seqlens_q").numel() - 1, most_queries = given.number("max_seqlen_q");
  const sequences of{integers(given.tensor("cu_seqlens_q"), count + 1, access),
                     integers(given.tensor("cu_seqlens_k"), count + 1, access),
                     integers(given.tensor("seqlen_k"), count, access)};
  check(of, query[0], keys[0], values[0], most_queries, given.number("max_seqlen_k"));
  const auto mask = given.number("custom_mask_type");
  TORCH_CHECK(mask == 0 || mask == 2, "the pretend device: attention: causal from the top left");
  count_kernel("aten::_efficient_attention_forward");
  const auto [mean, weight] =
      attend(of, as_host(query[0], access), as_host(keys[0], access), as_host(values[0], access), mask == 2);
  const auto most = given.flag("compute_log_sumexp") ? (most_queries + 31) / 32 * 32 : 0;
  auto weights = at::full({count, query.size(2), most}, INFINITY, at::kFloat);
  for (std::size_t i = 0; most > 0 && i < of.key_counts.size(); ++i) {
    const auto begin = of.query_starts[i], queries = of.query_starts[i + 1] - begin;
    weights[static_cast<std::int64_t>(i)].narrow(1, 0, queries).copy_(weight.narrow(0, begin, queries).t());
  }
  const auto nothing = at::empty({}, at::kLong);
  torch::jit::push(*stack, to_device(mean.unsqueeze(0), access), to_device(weights, access), nothing, nothing,
                   c10::SymInt(most_queries), c10::SymInt(given.number("max_seqlen_k")));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_flash_attention_forward", torch::CppFunction::makeFromBoxedFunction<&flash_attention>());
  m.impl("_efficient_attention_forward", torch::CppFunction::makeFromBoxedFunction<&efficient_attention>());
}

} // namespace

} // namespace parley::inference::testing
