#include "inference/llm/attention.hpp"

#include <ATen/ATen.h>

#include <limits>

namespace parley::inference::llm {

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
    // One row: the heads of a group are the rows of one small matrix against their common keys.
    auto q = query.view({1, kv_heads, group, head_dim});
    auto k = keys.permute({1, 0, 2}).unsqueeze(0);
    auto v = values.permute({1, 0, 2}).unsqueeze(0);
    return at::scaled_dot_product_attention(q, k, v).reshape({1, heads * head_dim});
  }
  // Key heads as the batch, the group as heads with stride 0: the mask is shared and no key is repeated.
  auto spread = [&](const at::Tensor& t) {
    return t.permute({1, 0, 2}).unsqueeze(1).expand({kv_heads, group, length, head_dim});
  };
  auto q = query.view({rows, kv_heads, group, head_dim}).permute({1, 2, 0, 3});
  return at::scaled_dot_product_attention(q, spread(keys), spread(values), mask)
      .permute({2, 0, 1, 3})
      .reshape({rows, heads * head_dim});
}

} // namespace parley::inference::llm
