#pragma once

#include "inference/kernels/simd.hpp"

#include <cstdint>
#include <span>

namespace parley::inference::cpu {

/// Keys and values of one head of one sequence, read in place: pages of `page_rows` rows, of which `rows` are valid.
template<class T>
struct paged_head {
  const T* keys;             ///< at row 0 of the pool, for this head
  const T* values;           ///< the same
  const std::int32_t* pages; ///< page i holds rows [i, i + 1) * page_rows
  std::int64_t page_rows;    ///< at most `largest_page`
  std::int64_t key_stride;   ///< distance of two rows
};

/// New rows of one sequence after `past` older ones; their own keys and values are already in the pages. Row i sees all
/// rows up to past + i.
struct query_rows {
  std::int64_t rows;
  std::int64_t past;
  std::int64_t heads;  ///< query heads that share this key head
  std::int64_t stride; ///< distance between two rows, in queries and in results; heads are adjacent
};

/// Rows of floats that are `stride` apart.
template<class T>
struct rows_apart {
  T* first;
  std::int64_t stride;
};

/// Keys and values of one head, [rows][head_dim], rows `stride` floats apart.
struct head_piece {
  const float* keys;
  const float* values;
  std::int64_t rows, stride;
};

/// The limits of `attend`: rows per page and numbers per head. Not checked.
constexpr std::int64_t largest_page = 64, largest_head = 256;

/// softmax(q k / sqrt(head_dim)) v, summed in float32. Apart from rounding, a row's result depends neither on the other
/// rows of the call nor on where the pages are. `queries` and `to` are [rows][heads][head_dim], with rows
/// `shape.stride` apart.
void attend(const float* queries, const paged_head<float>& past, const query_rows& shape, std::int64_t head_dim,
            float* to);
void attend(const bfloat16* queries, const paged_head<bfloat16>& past, const query_rows& shape, std::int64_t head_dim,
            bfloat16* to);

/// The same for one head: `rows` queries of `head_dim` numbers, each of which sees all rows of all pieces.
void attend(rows_apart<const float> queries, std::int64_t rows, std::span<const head_piece> past, std::int64_t head_dim,
            rows_apart<float> to);

} // namespace parley::inference::cpu
