#pragma once

#include "inference/formats/model_config.hpp"
#include "inference/llm/rope.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace parley::inference::llm {

class kv_cache;

/// Keys and values of all sessions on one device, in pages of `page_tokens` rows. One per engine; copies share it. A
/// cache gets contiguous pages wherever the pool has room, so that attention reads them without a copy. Caches with a
/// common beginning share its pages. Not thread-safe.
class kv_pool {
public:
  static constexpr int page_tokens = 64;

  /// Room for `sequences` caches of `tokens` rows each, rounded up to whole pages. On the CPU, memory that has never
  /// been written costs nothing.
  kv_pool(const llm_config& config, int sequences, int tokens, at::ScalarType dtype, at::Device device);

  /// A number of pages, for caches that hold up to `pages_per_sequence` of them each.
  struct room {
    int pages, pages_per_sequence;
  };
  kv_pool(const llm_config& config, room size, at::ScalarType dtype, at::Device device);

  /// An empty cache; it takes pages as it grows and returns them when destroyed.
  kv_cache open() const;

  int pages() const;
  int free_pages() const;

  /// How many rows have been moved within caches, each counted once for every layer.
  std::uint64_t moved_rows() const;

  /// Sets the function to call when no page is free. It evicts caches that nobody needs and returns whether it could.
  /// It applies to the pool and all its copies.
  void when_full(std::function<bool()> let_go) const;

  /// Number of pages for this many rows.
  static int pages_of(std::int64_t tokens) { return static_cast<int>((tokens + page_tokens - 1) / page_tokens); }

  /// Bytes of one sequence of `tokens` rows.
  static std::size_t bytes(const llm_config& config, int tokens, at::ScalarType dtype);

private:
  friend class kv_cache;
  struct store;
  std::shared_ptr<store> store_;
};

/// Rows that follow one another in the pool.
struct pool_run {
  std::int64_t first; ///< row of the pool
  std::int64_t rows;
};

/// Rows taken out of a cache: keys (already rotated) and values of every layer, in the pool's dtype.
struct kv_segment {
  at::Tensor keys;        ///< [layers, rows, kv_heads, head_dim]
  at::Tensor values;      ///< the same
  std::int64_t begin = 0; ///< position of the first row

  std::int64_t rows() const { return keys.defined() ? keys.size(1) : 0; }
};

/// One session's keys and values, in the pool's dtype. Row i was rotated for position i. Move-only. Pages may be shared
/// with other caches; writing to a shared page copies it first. Keeps the pool's memory alive. Not thread-safe.
class kv_cache {
public:
  kv_cache(kv_cache&&) noexcept;
  kv_cache& operator=(kv_cache&&) noexcept;
  ~kv_cache();

  std::int64_t length() const { return length_; }
  std::int64_t layers() const;
  int pages() const { return static_cast<int>(pages_.size()); }

  /// Number of pages that no other cache holds.
  int own_pages() const;

  /// A cache with the same rows that shares all pages with this one.
  kv_cache fork() const;

  /// A copy for storage: like `fork`, but with its own copy of a partly filled last page, elsewhere, so that this cache
  /// stays contiguous. Throws std::runtime_error if the pool is empty.
  kv_cache keep() const;

  /// Reserves space for `rows` more rows. Throws std::runtime_error if the pool is empty; existing rows are unchanged.
  void reserve(std::int64_t rows);

  /// Number of pages that `reserve(rows)` takes from the pool. If the cache is parked: that `restore` and then
  /// `reserve(rows)` take.
  int pages_to_take(std::int64_t rows) const;

  /// The same for writing rows [begin, end): of their pages, those that are shared are copied.
  int pages_to_write(std::int64_t begin, std::int64_t end) const;

  /// Moves all rows to the host's memory and returns the pages. Until `restore`, only `length`, `truncate`, `park`,
  /// `pages_to_take` and the destructor may be called.
  void park();
  bool parked() const { return parked_.has_value(); }

  /// Moves the rows back into pages of its own, with the same values. Throws std::runtime_error if the pool is short;
  /// the cache then stays parked.
  void restore();

  /// Its pages in the pool, in order: page i holds rows [i, i + 1) * page_tokens.
  std::span<const std::int32_t> page_numbers() const { return pages_; }

  /// An empty cache of the same pool.
  kv_cache sibling() const { return kv_cache(store_); }

  /// The pool's first row that no cache ever holds, for what pads a call: a page of them, elsewhere than on the CPU.
  std::int64_t spare_row() const;

  /// A view of one layer of the whole pool: [pool's rows, kv_heads, head_dim].
  at::Tensor pool_keys(int layer) const;
  at::Tensor pool_values(int layer) const;

  /// Appends the pool's row numbers for rows [length, length + rows) to `into`; the rows must be reserved.
  void rows_to_write(std::int64_t rows, std::vector<std::int64_t>& into) const;

  /// Writes `keys`, `values` [rows, kv_heads, head_dim] for many caches at once, at the pool's row numbers `rows`
  /// (int64 [rows]) from `rows_to_write`.
  void write(int layer, const at::Tensor& rows, const at::Tensor& keys, const at::Tensor& values) const;

  /// Makes the written rows valid.
  void commit(std::int64_t rows) { length_ += rows; }

  /// Rows [0, length + pending) of a layer: [rows, kv_heads, head_dim]. A view if the pages are contiguous.
  at::Tensor keys(int layer, std::int64_t pending = 0) const;
  at::Tensor values(int layer, std::int64_t pending = 0) const;

  /// Where rows [0, length + pending) are, in order. Caches with a common beginning have a common first run, if each of
  /// them continues elsewhere.
  std::vector<pool_run> runs(std::int64_t pending = 0) const;

  /// Drops all rows from `length` on.
  void truncate(std::int64_t length);

  /// A copy of rows [begin, length).
  kv_segment copy_from(std::int64_t begin) const;

  /// Appends rows taken from elsewhere, with keys rotated to their new positions (docs/model/thinker.md 5.6). Throws
  /// like `reserve`.
  void append(const kv_segment& rows, const rope& positions);

  /// Removes rows [begin, begin + count); later rows move up. Throws like `append`, but only if pages are shared. Both
  /// leave the cache unchanged if they throw.
  void drop(std::int64_t begin, std::int64_t count, const rope& positions);

  // Moving rows within a cache, for `cache_slide`: `begin_moves`, `move_rows` for every layer, `end_moves`, and
  // `close_gap` once the gap is filled. In between it may be parked and restored.

  /// Rows [keep, end) get pages of this cache alone. Throws like `reserve`; existing rows are unchanged.
  void begin_moves(std::int64_t keep, std::int64_t end);

  /// Moves rows of one layer. `turn`: for the keys, as `rope::move` gives it for the same moves.
  void move_rows(std::int64_t layer, std::span<const row_move> moves, const rope::rotation& turn);

  /// From here on the cache has `keep` rows. Those that were moved stay behind a gap of `gap` rows, up to row `end`; it
  /// grows into the gap without taking pages.
  void end_moves(std::int64_t keep, std::int64_t gap, std::int64_t end);

  /// The cache has all its rows again.
  void close_gap();

private:
  friend class kv_pool;
  explicit kv_cache(std::shared_ptr<kv_pool::store> store);

  enum class place { in_run, apart };

  std::vector<pool_run> runs_of(std::int64_t begin, std::int64_t end) const;
  at::Tensor rows_of(const at::Tensor& layer, std::int64_t begin, std::int64_t end) const;
  std::int32_t take(std::int32_t last, place where) const;
  void own_last_page(place where);
  void own_page(std::size_t number, place where);
  void make_room(std::int64_t from, std::int64_t rows);
  void list_rows(std::int64_t begin, std::int64_t rows, std::vector<std::int64_t>& into) const;
  void put_at(std::int64_t begin, const kv_segment& segment, const rope& positions);
  void release(std::size_t keep);
  std::int64_t extent() const { return gap_ ? gap_->end : length_; } ///< rows for which it needs pages

  /// Rows [behind, end) belong to the cache, but those before them are not there yet.
  struct gap {
    std::int64_t begin, behind, end;
  };

  std::shared_ptr<kv_pool::store> store_;
  std::vector<std::int32_t> pages_;
  std::int64_t length_ = 0;
  std::optional<gap> gap_;
  std::optional<kv_segment> parked_; ///< all rows, on the CPU; then it has no pages
};

} // namespace parley::inference::llm
