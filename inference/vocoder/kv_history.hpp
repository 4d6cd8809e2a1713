#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace parley::inference::speech {

/// Keys and values of one attention: pieces with equal sizes but for their numbers of rows. Pieces are never written to,
/// so histories with a common beginning, like those of all streams of one voice, share them, and a copy costs nothing.
class kv_history {
public:
  /// `rows_axis`: the pieces' axis that counts rows.
  explicit kv_history(std::int64_t rows_axis) : axis_(rows_axis) {}

  /// Adds a piece before, or behind, all others.
  void push_front(at::Tensor piece);
  void push_back(at::Tensor piece);

  /// Keeps only the first `front` rows and the last `back` ones, front + back <= rows(). Copies nothing.
  void keep_ends(std::int64_t front, std::int64_t back);

  /// Adds all rows once more, behind.
  void repeat();

  std::int64_t rows() const;
  const std::vector<at::Tensor>& pieces() const { return pieces_; }

  /// All rows as one tensor; copied if there is more than one piece.
  at::Tensor joined() const;

  /// Makes one dense piece of all rows and returns it.
  const at::Tensor& join();

  /// The same if somebody has joined them already.
  void replace(at::Tensor joined) { pieces_ = {std::move(joined)}; }

private:
  std::int64_t axis_;
  std::vector<at::Tensor> pieces_;
};

/// Joins the histories of several blocks with equally many rows: [blocks, …].
at::Tensor stacked(const std::vector<kv_history>& blocks);

} // namespace parley::inference::speech
