#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace parley::inference::llm {

/// The causal mask for `rows` new rows after `past` old ones: additive [rows, past + rows], 0 or -inf. Undefined for a
/// single row, which sees everything.
at::Tensor causal_mask(std::int64_t rows, std::int64_t past, at::ScalarType dtype, at::Device device);

/// Grouped-query attention of one sequence: `query` [rows, heads, head_dim], `keys` and `values` [length, kv_heads,
/// head_dim] as views of the pool; nothing is copied or repeated. `mask` comes from `causal_mask`. Returns [rows, heads
/// * head_dim], in the query's dtype.
at::Tensor attend(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values, const at::Tensor& mask);

/// The result for one part of the keys and values. To combine the parts, average their means with weights e^weight.
struct partial_attention {
  at::Tensor mean;   ///< [rows, heads * head_dim], in the query's dtype
  at::Tensor weight; ///< float32 [rows, heads]: logarithm of the sum of exponentials
};

/// Like `attend`, over a part of the keys; an undefined mask hides nothing. Each row must see at least one key.
partial_attention attend_part(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                              const at::Tensor& mask);

} // namespace parley::inference::llm
