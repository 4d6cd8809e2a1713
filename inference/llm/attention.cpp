#include "inference/llm/attention.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <utility>

namespace parley::inference::llm {

namespace {

/// query [batch, heads, n, head_dim] → the result in the same shape, and each row's logsumexp [batch, heads, n].
std::pair<at::Tensor, at::Tensor> with_weights_on_cpu(const at::Tensor& query, const at::Tensor& keys,
                                                      const at::Tensor& values, const at::Tensor& mask) {
  c10::optional<at::Tensor> hidden;
  if (mask.defined()) hidden = mask;
  auto [mean, weight] = at::_scaled_dot_product_flash_attention_for_cpu(query, keys, values, 0.0, false, hidden);
  return {mean, weight};
}

/// `attend_part` by plain products, for devices. Scores are float32, as in fused attention: rounded to bfloat16, a score
/// of 100 is off by up to a quarter.
partial_attention attend_part_on_device(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                                        const at::Tensor& mask) {
  const auto rows = query.size(0), heads = query.size(1), head_dim = query.size(2);
  const auto length = keys.size(0), kv_heads = keys.size(1), group = heads / kv_heads;
  // The heads of a group and all rows form one matrix times their common keys.
  const auto q = query.view({rows, kv_heads, group, head_dim}).permute({1, 2, 0, 3}).to(at::kFloat);
  auto scores = at::matmul(q.reshape({kv_heads, group * rows, head_dim}), keys.permute({1, 2, 0}).to(at::kFloat))
                    .div_(std::sqrt(static_cast<double>(head_dim)))
                    .view({kv_heads, group, rows, length});
  if (mask.defined()) scores = scores + mask;
  const auto weight = scores.logsumexp(-1);
  const auto shares = (scores - weight.unsqueeze(-1)).exp_().to(values.scalar_type());
  const auto mean = at::matmul(shares.view({kv_heads, group * rows, length}), values.transpose(0, 1));
  return {mean.view({kv_heads, group, rows, head_dim}).permute({2, 0, 1, 3}).reshape({rows, heads * head_dim}),
          weight.permute({2, 0, 1}).reshape({rows, heads})};
}

} // namespace

at::Tensor causal_mask(std::int64_t rows, std::int64_t past, at::ScalarType dtype, at::Device device) {
  if (rows == 1) return {};
  return at::full({rows, past + rows}, -std::numeric_limits<double>::infinity(),
                  at::TensorOptions(dtype).device(device))
      .triu_(past + 1);
}

at::Tensor attend(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values, const at::Tensor& mask) {
  auto rows = query.size(0), heads = query.size(1), head_dim = query.size(2);
  auto length = keys.size(0), kv_heads = keys.size(1), group = heads / kv_heads;
  if (!mask.defined()) {
    // A single row: the heads of a group form a small matrix, multiplied by their common keys.
    auto q = query.view({1, kv_heads, group, head_dim});
    auto k = keys.permute({1, 0, 2}).unsqueeze(0);
    auto v = values.permute({1, 0, 2}).unsqueeze(0);
    return at::scaled_dot_product_attention(q, k, v).reshape({1, heads * head_dim});
  }
  // Key heads form the batch, and the heads of a group have stride 0: the mask is shared, and no key is copied.
  auto spread = [&](const at::Tensor& t) {
    return t.permute({1, 0, 2}).unsqueeze(1).expand({kv_heads, group, length, head_dim});
  };
  auto q = query.view({rows, kv_heads, group, head_dim}).permute({1, 2, 0, 3});
  return at::scaled_dot_product_attention(q, spread(keys), spread(values), mask)
      .permute({2, 0, 1, 3})
      .reshape({rows, heads * head_dim});
}

partial_attention attend_part(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                              const at::Tensor& mask) {
  if (!query.is_cpu()) return attend_part_on_device(query, keys, values, mask);
  auto rows = query.size(0), heads = query.size(1), head_dim = query.size(2);
  auto length = keys.size(0), kv_heads = keys.size(1), group = heads / kv_heads;
  if (!mask.defined()) {
    // The heads of a group and all rows form one matrix, multiplied by their common keys.
    auto q =
        query.view({rows, kv_heads, group, head_dim}).transpose(0, 1).reshape({1, kv_heads, rows * group, head_dim});
    auto [mean, weight] =
        with_weights_on_cpu(q, keys.transpose(0, 1).unsqueeze(0), values.transpose(0, 1).unsqueeze(0), {});
    return {mean.view({kv_heads, rows, group, head_dim}).transpose(0, 1).reshape({rows, heads * head_dim}),
            weight.view({kv_heads, rows, group}).transpose(0, 1).reshape({rows, heads})};
  }
  auto spread = [&](const at::Tensor& t) {
    return t.transpose(0, 1).unsqueeze(1).expand({kv_heads, group, length, head_dim});
  };
  auto q = query.view({rows, kv_heads, group, head_dim}).permute({1, 2, 0, 3});
  auto [mean, weight] = with_weights_on_cpu(q, spread(keys), spread(values), mask);
  return {mean.permute({2, 0, 1, 3}).reshape({rows, heads * head_dim}),
          weight.permute({2, 0, 1}).reshape({rows, heads})};
}

} // namespace parley::inference::llm
