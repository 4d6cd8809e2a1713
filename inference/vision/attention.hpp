#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace parley::inference::vision {

/// Attention inside each of several sequences that lie one below the other: a piece sees itself alone, without padding.
/// query [sum of query_rows, heads * d], key and value [sum of key_rows, heads * d] → as query, of
/// the same dtype. Neighbours of equal lengths go into one call.
at::Tensor attend_within(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         std::span<const std::int64_t> query_rows, std::span<const std::int64_t> key_rows,
                         std::int64_t heads);

} // namespace parley::inference::vision
