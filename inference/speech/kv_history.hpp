#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace parley::inference::speech {

/// Keys and values that an attention without positions looks back at: pieces [B, heads, n, k | v], the newest first. A
/// piece is never written to, so histories that began alike, as all streams of one voice do, share it, and a copy costs
/// nothing.
class kv_history {
public:
  /// A dense piece in front of all others.
  void push_front(at::Tensor piece);

  /// Forgets what is behind the first `front` rows and before the last `back` ones, front + back <= rows().
  void keep_ends(std::int64_t front, std::int64_t back);

  std::int64_t rows() const;
  const std::vector<at::Tensor>& pieces() const { return pieces_; }

  /// All rows as one tensor, [B, heads, rows, k | v]; a copy when there is more than one piece.
  at::Tensor joined() const;

private:
  std::vector<at::Tensor> pieces_;
};

/// Those of several blocks, of equally many rows: [blocks, B, heads, rows, k | v].
at::Tensor stacked(const std::vector<kv_history>& blocks);

} // namespace parley::inference::speech
