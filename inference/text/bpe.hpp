#pragma once

#include "inference/text/flat_map.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace parley::inference::text {

/// Byte-pair merges by rank (docs/model/thinker.md 1, step 5). Once filled, it may be read from several threads.
class bpe {
public:
  using id = std::int32_t;

  /// `byte_ids[b]` is the token of the single byte b.
  explicit bpe(std::array<id, 256> byte_ids, std::size_t merges = 0) : byte_ids_(byte_ids), merges_(merges) {}

  /// Adds the next merge by rank: `left` followed by `right` becomes `joined`.
  void add_merge(id left, id right, id joined);

  /// Appends the tokens of one word (raw bytes). The pair with the lowest rank is merged first, the leftmost among
  /// equals. O(n log n).
  void encode(std::string_view word, std::vector<std::int64_t>& out) const;

private:
  struct merge {
    std::int32_t rank;
    id joined;
  };

  const merge* find(id left, id right) const {
    return merges_.find(std::uint64_t(std::uint32_t(left)) << 32 | std::uint32_t(right));
  }

  std::array<id, 256> byte_ids_;
  flat_map<merge> merges_;
  std::int32_t next_rank_ = 0;
};

} // namespace parley::inference::text
