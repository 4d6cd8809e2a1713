#pragma once

#include "inference/llm/kv_pool.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace parley::inference::llm {

/// Some rows of one sequence, to be appended to its cache.
struct sequence_rows {
  kv_cache* cache; ///< distinct within a call
  std::int64_t rows;
  std::int64_t shift = 0; ///< the first row's position is the cache's length plus this
};

/// Attention of the rows of many sequences, each over its own cache, without padding. Planned once for all layers. If a
/// cache's pages form two runs, its rows attend to each run separately, and the two results are averaged with weights.
/// Sequences with the same first run, a shared beginning, attend to it in one call, so that it is read once.
class ragged_attention {
public:
  /// Sequences follow each other, with their rows reserved in the caches. Both must outlive this. `options`: dtype and
  /// device of the rows.
  ragged_attention(std::span<const sequence_rows> sequences, const at::TensorOptions& options);

  /// `query` [rows, heads, head_dim] → the first rows of `into` [>= rows, heads * head_dim]. The layer's keys and
  /// values must have been written.
  void run(int layer, const at::Tensor& query, const at::Tensor& into) const;

private:
  struct part {
    const kv_cache* cache;
    std::int64_t first, rows;
    std::int64_t begin; ///< the cache's earlier rows belong to the front
    at::Tensor mask;
  };
  struct front {
    const kv_cache* cache; ///< any cache that starts with it
    std::int64_t rows;     ///< in the cache
    std::vector<std::int64_t> members;
    at::Tensor index; ///< the members' rows among all rows; undefined = they are contiguous
  };

  void add_fronts(const at::Tensor& query, const at::Tensor& into, int layer, const at::Tensor& weights) const;

  std::int64_t rows_ = 0;
  std::vector<part> parts_;
  std::vector<front> fronts_;
};

} // namespace parley::inference::llm
