#include "inference/vision/attention.hpp"

#include <ATen/ATen.h>

#include <vector>

namespace parley::inference::vision {

at::Tensor attend_within(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         std::span<const std::int64_t> query_rows, std::span<const std::int64_t> key_rows,
                         std::int64_t heads) {
  std::vector<at::Tensor> outputs;
  auto query_begin = std::int64_t{0}, key_begin = std::int64_t{0};
  for (std::size_t i = 0; i < query_rows.size();) {
    auto end = i;
    while (end < query_rows.size() && query_rows[end] == query_rows[i] && key_rows[end] == key_rows[i]) ++end;
    const auto count = static_cast<std::int64_t>(end - i);
    auto part = [&](const at::Tensor& rows, std::int64_t begin, std::int64_t each) {
      return rows.narrow(0, begin, count * each).view({count, each, heads, -1}).transpose(1, 2);
    };
    auto q = part(query, query_begin, query_rows[i]);
    auto out =
        at::scaled_dot_product_attention(q, part(key, key_begin, key_rows[i]), part(value, key_begin, key_rows[i]));
    outputs.push_back(out.transpose(1, 2).flatten(2).flatten(0, 1));
    query_begin += count * query_rows[i];
    key_begin += count * key_rows[i];
    i = end;
  }
  return outputs.size() == 1 ? outputs.front() : at::cat(outputs);
}

} // namespace parley::inference::vision
