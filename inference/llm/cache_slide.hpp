#pragma once

#include "inference/llm/kv_pool.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace parley::inference::llm {

/// Drops rows of a cache and moves the others, layer by layer, so that a long cache delays nobody. Until it is done, the
/// cache may be parked and restored, and nothing else.
class cache_slide {
public:
  /// Rows [0, keep) stay; `moves`, ascending, put all others behind a gap of `gap` rows, and the last of them ends at
  /// `length`. `cache` and `positions` must outlive this.
  cache_slide(kv_cache& cache, std::int64_t keep, std::int64_t gap, std::vector<row_move> moves, std::int64_t length,
              const rope& positions);

  /// Pages that the next step takes from the pool.
  int pages() const;

  /// Layers that are left; at least one until it is done.
  std::int64_t left() const { return left_; }

  /// Moves the rows of the next layers; after the last one only the gap is missing (`kv_cache::close_gap`). Throws like
  /// `kv_cache::reserve`, but only the first time, and then nothing has changed.
  void advance(std::int64_t layers);

private:
  kv_cache& cache_;
  std::int64_t keep_, gap_, length_, left_;
  std::vector<row_move> moves_;
  const rope& positions_;
  std::optional<rope::rotation> turn_; ///< once it has begun
};

} // namespace parley::inference::llm
