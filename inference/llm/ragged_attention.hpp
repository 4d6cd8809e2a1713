#pragma once

#include "inference/llm/kv_pool.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace parley::inference::llm {

/// Some rows of one sequence, to be put behind what its cache holds.
struct sequence_rows {
  kv_cache* cache; ///< distinct within a call
  std::int64_t rows;
  std::int64_t shift = 0; ///< the first row's position is the cache's length plus this
};

/// Attention of the rows of many sequences, each against its own cache, without padding. Planned once for all layers.
/// Where a cache's pages lie in two runs, its rows meet each run alone and the two results are weighed; sequences whose
/// first run is the same, a shared beginning, meet it in one call, so that it is read once.
class ragged_attention {
public:
  /// Rows lie one sequence below the other and are reserved in the caches. Both outlive this. `options`: dtype and
  /// device of the rows.
  ragged_attention(std::span<const sequence_rows> sequences, const at::TensorOptions& options);

  /// `query` [rows, heads, head_dim] → the first rows of `into` [>= rows, heads * head_dim]. The layer's keys and
  /// values are written.
  void run(int layer, const at::Tensor& query, const at::Tensor& into) const;

private:
  struct part {
    const kv_cache* cache;
    std::int64_t first, rows;
    std::int64_t begin; ///< the cache's rows before are the front's
    at::Tensor mask;
  };
  struct front {
    const kv_cache* cache; ///< any one that has it
    std::int64_t rows;     ///< of the cache
    std::vector<std::int64_t> members;
    at::Tensor index; ///< of the members among the rows; undefined = they are contiguous
  };

  void add_fronts(const at::Tensor& query, const at::Tensor& into, int layer, const at::Tensor& weights) const;

  std::int64_t rows_ = 0;
  std::vector<part> parts_;
  std::vector<front> fronts_;
};

} // namespace parley::inference::llm
