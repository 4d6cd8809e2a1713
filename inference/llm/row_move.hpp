#pragma once

#include <cstdint>

namespace parley::inference::llm {

/// Rows [from, from + rows) of a KV cache become its rows [to, to + rows), their keys rotated to the new positions
/// (docs/model/thinker.md 5.6).
struct row_move {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t rows = 0;

  friend bool operator==(const row_move&, const row_move&) = default;
};

} // namespace parley::inference::llm
