#pragma once

#include "inference/kernels/packed_upload.hpp"
#include "inference/kernels/varlen_attention.hpp"
#include "inference/llm/kv_pool.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace parley::inference::llm {

/// Some rows of one sequence, to be appended to its cache.
struct sequence_rows {
  kv_cache* cache; ///< distinct within a call
  std::int64_t rows;
  std::int64_t shift = 0; ///< the first row's position is the cache's length plus this
};

/// Attention of the rows of many sequences, each over its own cache, without padding. Planned once for all layers. One
/// call attends to the run of pages that holds a row itself; if any cache has runs before that one, there is one more
/// call for all first runs, and so on, and results are averaged with their weights. So the number of calls depends on
/// how many runs a cache has, not on how many sequences there are. Sequences with the same run, a shared beginning, read
/// it together.
class ragged_attention {
public:
  /// Sequences follow each other, with their rows reserved in the caches. Adds what the device must know to `numbers`.
  ragged_attention(std::span<const sequence_rows> sequences, packed_upload& numbers);

  /// A plan that all calls of one shape share, for a graph (inference/kernels/device_graph): a row of each sequence, then
  /// rows that pad it.
  struct shape {
    std::int64_t rows;         ///< with the padding
    bool shares;               ///< each sequence attends to an earlier run, too, which others may have
    bool in_order;             ///< as they follow each other, so do those that have the same earlier run
    std::int64_t earlier_runs; ///< of all of them, padded; 0 = none
    std::int64_t keys;         ///< at most so many of a run
  };

  /// None for sequences with more rows, or with more than one earlier run.
  static std::optional<shape> shape_of(std::span<const sequence_rows> sequences);

  /// `shape_of` these sequences. The padding is written to the pool's spare rows.
  ragged_attention(std::span<const sequence_rows> sequences, const shape& padded, packed_upload& numbers);

  /// Call it once the numbers are there.
  void use(const packed_upload& numbers);

  /// `query` [rows, heads, head_dim] → the same shape. `keys` and `values`: a layer of the pool, [pool's rows, kv_heads,
  /// head_dim], with the new rows written.
  at::Tensor run(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values) const;

private:
  /// Some rows' attention to keys that all of them see.
  struct earlier_run {
    varlen_attention attention;
    packed_upload::part numbers, row_numbers;
    bool all_rows;    ///< all rows of the call, in order
    at::Tensor index; ///< else their numbers
  };
  /// Results so far.
  struct partial {
    at::Tensor mean;   ///< [rows, heads, head_dim]
    at::Tensor weight; ///< float32 [rows, heads]: logarithm of the sum of exponentials
  };
  void add_earlier(std::span<const sequence_rows> sequences, std::size_t rank, packed_upload& numbers);
  void add_earlier(std::span<const sequence_rows> sequences, const shape& padded, packed_upload& numbers);
  static void include(partial& so_far, const earlier_run& next, const partial& found, bool last);

  varlen_attention own_;
  packed_upload::part own_numbers_;
  std::vector<earlier_run> earlier_;
};

} // namespace parley::inference::llm
