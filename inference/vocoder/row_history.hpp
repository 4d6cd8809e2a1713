#pragma once

#include "inference/kernels/packed_upload.hpp"
#include "inference/vocoder/row_pool.hpp"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// Which rows of a `row_pool` are one stream's history, and in what order. A copy is the history as it is now: rows that
/// some copy counts are not written to, so that a stream can go back to it.
class row_history {
public:
  std::int64_t rows() const { return counted_ ? std::ssize(*counted_) : 0; }

  /// Where its rows are in the tensors of the pool, in order.
  std::vector<std::int64_t> where() const;

  /// The first row of its region. There must be one.
  std::int64_t begin() const { return home_->region->first(); }

  /// Keeps only the first `front` rows and the last `back` ones, front + back <= rows().
  void keep_ends(std::int64_t front, std::int64_t back);

  /// Counts all rows once more, behind.
  void repeat();

  /// Of a row in all tensors of the pool, and of the region.
  std::size_t row_bytes() const;
  std::size_t region_bytes() const;

  /// Null before the first call.
  const row_pool::region* region() const { return home_ ? home_->region.get() : nullptr; }

private:
  friend class row_writes;
  using numbers = std::vector<std::int64_t>;

  /// A region, and what its stream's copies count of it.
  struct home {
    std::shared_ptr<const row_pool::region> region;
    std::vector<std::weak_ptr<const numbers>> counted;
  };

  void count(numbers rows);

  std::shared_ptr<home> home_;
  std::shared_ptr<const numbers> counted_; ///< rows of the region
};

/// New rows of many histories in one call. Everything that it writes to was counted by nobody before.
class row_writes {
public:
  /// dense: the rows of a history follow one another, from its region's first row on, in any order.
  enum class layout { dense, scattered };
  enum class side { front, back };

  /// Where a history keeps its new rows: before the others or behind them.
  struct how {
    layout rows;
    side fresh;
  };

  /// Counts `fresh[i]` new rows of each history; nothing is in them before `move` and the caller's writing. A history
  /// without a region in this pool, or whose region has no room, gets another one. Throws c10::Error if the device has no
  /// memory left; some histories then count new rows.
  row_writes(const row_pool& in, std::span<row_history* const> of, std::span<const std::int64_t> fresh, how written);

  /// Also writes `count` rows, from `first` on, that belong to no history.
  void pad(std::int64_t first, std::int64_t count);

  /// Moves earlier rows to where they are counted now. Uploads only if there are any.
  void move() const;

  /// Adds to `numbers` what the device must know, and reads it back once it has been sent.
  void add_to(packed_upload& numbers);
  void use(const packed_upload& sent) { targets_ = sent[target_part_]; }

  /// int64 [all new rows]: where each goes, in the order of the histories.
  const at::Tensor& targets() const { return targets_; }

private:
  /// Rows that come from one pool.
  struct moves {
    row_pool from;
    std::vector<std::int64_t> sources{}, targets{};
  };

  bool stay(row_history& of, std::int64_t fresh, std::vector<std::int64_t>& targets);
  std::vector<std::int64_t> find_room(const row_history& of, std::int64_t fresh) const;
  std::int64_t wanted(const row_history& of, std::int64_t fresh) const;
  void settle(row_history& of, std::int64_t fresh, std::vector<std::int64_t>& targets);
  moves& moves_from(const row_pool& pool);

  row_pool pool_;
  how how_;
  std::vector<moves> moves_;
  std::vector<std::shared_ptr<row_history::home>> left_; ///< regions that rows move from, to nobody else meanwhile
  std::vector<std::int64_t> planned_;
  packed_upload::part target_part_;
  at::Tensor targets_;
};

} // namespace parley::inference::speech
