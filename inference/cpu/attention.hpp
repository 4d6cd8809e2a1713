#pragma once

#include "inference/cpu/simd.hpp"

#include <cstdint>
#include <span>

namespace parley::inference::cpu {

/// Keys and values of one head of one sequence, where they lie: runs of `page_rows` rows each, of which `rows` count in
/// all.
template<class T>
struct paged_head {
  const T* keys;             ///< of the pool's row 0 and this head
  const T* values;           ///< the same
  const std::int32_t* pages; ///< page i holds rows [i, i + 1) * page_rows
  std::int64_t page_rows;    ///< at most `largest_page`
  std::int64_t key_stride;   ///< from a row to the next one
};

/// New rows of one sequence behind `past` older ones; their own keys and values are in the pages already. Row i sees
/// the rows up to past + i.
struct query_rows {
  std::int64_t rows;
  std::int64_t past;
  std::int64_t heads;  ///< query heads that share this key head
  std::int64_t stride; ///< from a row to the next one, of queries and of results; heads lie side by side
};

/// Rows of floats, from one to the next `stride`.
template<class T>
struct rows_apart {
  T* first;
  std::int64_t stride;
};

/// Keys and values of one head, [rows][head_dim], `stride` floats from a row to the next.
struct head_piece {
  const float* keys;
  const float* values;
  std::int64_t rows, stride;
};

/// What `attend` has room for: rows of a page, and numbers of a head. Not checked.
constexpr std::int64_t largest_page = 64, largest_head = 256;

/// softmax(q k / sqrt(head_dim)) v. A row's result does not depend on the rows that are computed with it beyond
/// rounding, nor on where the pages lie. Sums are float32. `queries` and `to` are [rows][heads][head_dim], rows
/// `shape.stride` apart.
void attend(const float* queries, const paged_head<float>& past, const query_rows& shape, std::int64_t head_dim,
            float* to);
void attend(const bfloat16* queries, const paged_head<bfloat16>& past, const query_rows& shape, std::int64_t head_dim,
            bfloat16* to);

/// The same of one head, `rows` queries of `head_dim` numbers, where each sees all rows of all pieces.
void attend(rows_apart<const float> queries, std::int64_t rows, std::span<const head_piece> past, std::int64_t head_dim,
            rows_apart<float> to);

} // namespace parley::inference::cpu
