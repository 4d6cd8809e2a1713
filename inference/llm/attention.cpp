#include "inference/llm/attention.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <utility>

namespace parley::inference::llm {

namespace {

/// query [batch, heads, n, head_dim] → the result in the same shape, and each row's logsumexp [batch, heads, n].
std::pair<at::Tensor, at::Tensor> with_weights(const at::Tensor& query, const at::Tensor& keys,
                                               const at::Tensor& values, const at::Tensor& mask) {
  if (query.is_cpu()) {
    c10::optional<at::Tensor> hidden;
    if (mask.defined()) hidden = mask;
    auto [mean, weight] = at::_scaled_dot_product_flash_attention_for_cpu(query, keys, values, 0.0, false, hidden);
    return {mean, weight};
  }
  auto scores =
      at::matmul(query, keys.transpose(-1, -2)).to(at::kFloat) / std::sqrt(static_cast<double>(query.size(-1)));
  if (mask.defined()) scores = scores + mask;
  auto weight = scores.logsumexp(-1);
  return {at::matmul((scores - weight.unsqueeze(-1)).exp().to(values.scalar_type()), values), weight};
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
  auto rows = query.size(0), heads = query.size(1), head_dim = query.size(2);
  auto length = keys.size(0), kv_heads = keys.size(1), group = heads / kv_heads;
  if (!mask.defined()) {
    // The heads of a group and all rows form one matrix, multiplied by their common keys.
    auto q =
        query.view({rows, kv_heads, group, head_dim}).transpose(0, 1).reshape({1, kv_heads, rows * group, head_dim});
    auto [mean, weight] = with_weights(q, keys.transpose(0, 1).unsqueeze(0), values.transpose(0, 1).unsqueeze(0), {});
    return {mean.view({kv_heads, rows, group, head_dim}).transpose(0, 1).reshape({rows, heads * head_dim}),
            weight.view({kv_heads, rows, group}).transpose(0, 1).reshape({rows, heads})};
  }
  auto spread = [&](const at::Tensor& t) {
    return t.transpose(0, 1).unsqueeze(1).expand({kv_heads, group, length, head_dim});
  };
  auto q = query.view({rows, kv_heads, group, head_dim}).permute({1, 2, 0, 3});
  auto [mean, weight] = with_weights(q, spread(keys), spread(values), mask);
  return {mean.permute({2, 0, 1, 3}).reshape({rows, heads * head_dim}),
          weight.permute({2, 0, 1}).reshape({rows, heads})};
}

} // namespace parley::inference::llm
