#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace parley::inference::vision {

/// Attention within each of several sequences whose rows follow each other: a piece sees only itself, without padding.
/// query [sum of query_rows, heads * d], key and value [sum of key_rows, heads * d] → like query, in the same dtype.
/// Adjacent sequences of equal length share one call.
at::Tensor attend_within(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         std::span<const std::int64_t> query_rows, std::span<const std::int64_t> key_rows,
                         std::int64_t heads);

} // namespace parley::inference::vision
