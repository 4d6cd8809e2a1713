#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace parley::inference::speech {

/// Keys and values for an attention without positions: pieces [B, heads, n, k | v], the newest first. Pieces are never
/// written to, so histories with a common beginning, like those of all streams of one voice, share them, and a copy
/// costs nothing.
class kv_history {
public:
  /// Adds a dense piece before all others.
  void push_front(at::Tensor piece);

  /// Keeps only the first `front` rows and the last `back` ones, front + back <= rows().
  void keep_ends(std::int64_t front, std::int64_t back);

  std::int64_t rows() const;
  const std::vector<at::Tensor>& pieces() const { return pieces_; }

  /// All rows as one tensor, [B, heads, rows, k | v]; copied if there is more than one piece.
  at::Tensor joined() const;

private:
  std::vector<at::Tensor> pieces_;
};

/// Joins the histories of several blocks with equally many rows: [blocks, B, heads, rows, k | v].
at::Tensor stacked(const std::vector<kv_history>& blocks);

} // namespace parley::inference::speech
