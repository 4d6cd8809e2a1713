#include "inference/kernels/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace parley::inference::cpu {

namespace {

constexpr auto minus_infinity = -std::numeric_limits<float>::infinity();

/// How many queries process a page together, and from how many on transposing the page's keys pays off.
constexpr std::int64_t most_queries = 32, worth_turning = 5;

/// Working memory of one call, on the stack: 208 KB.
struct workspace {
  std::int64_t width; ///< row length of a query or sum: head_dim rounded up to whole vectors
  alignas(64) float queries[most_queries * largest_head];
  alignas(64) float sums[most_queries * largest_head];
  alignas(64) float scores[most_queries * largest_page];
  alignas(64) float keys[largest_page * largest_head]; ///< [row][d], or [d][row] when transposed
  alignas(64) float values[largest_page * largest_head];
  float top[most_queries], total[most_queries];
};

/// How many rows ahead keys and values are prefetched. The rows of a head lie far apart (4 KB with 8 heads of 128 floats), so
/// the processor does not find the next one by itself.
constexpr std::int64_t rows_ahead = 8;

template<class T>
PARLEY_INLINE void prefetch(const T* row, std::int64_t count) {
  constexpr std::int64_t line = 64 / sizeof(T);
  for (std::int64_t i = 0; i < count; i += line) __builtin_prefetch(row + i, 0, 2);
}

PARLEY_INLINE const float* as_floats(const float* rows, std::int64_t, std::int64_t, std::int64_t stride, float*,
                                     std::int64_t& dense) {
  dense = stride;
  return rows;
}

PARLEY_INLINE const float* as_floats(const bfloat16* rows, std::int64_t count, std::int64_t width, std::int64_t stride,
                                     float* room, std::int64_t& dense) {
  for (std::int64_t row = 0; row < count; ++row) {
    if (row + rows_ahead < count) prefetch(rows + (row + rows_ahead) * stride, width);
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) room[row * width + i] = widen(rows[row * stride + i]);
  }
  dense = width;
  return room;
}

/// Four queries against a page of transposed keys: 4 x 64 scores, kept in registers.
PARLEY_INLINE void score_four(workspace& w, std::int64_t first, std::int64_t head_dim) {
  vector sums[4][4] = {};
  const auto* query = w.queries + first * w.width;
  for (std::int64_t d = 0; d < head_dim; ++d) {
    const auto* keys = w.keys + d * largest_page;
    const vector a = at(keys), b = at(keys + 16), c = at(keys + 32), e = at(keys + 48);
    for (auto q = 0; q < 4; ++q) {
      const auto factor = query[q * w.width + d];
      sums[q][0] += factor * a, sums[q][1] += factor * b, sums[q][2] += factor * c, sums[q][3] += factor * e;
    }
  }
  for (auto q = 0; q < 4; ++q)
    for (auto i = 0; i < 4; ++i) at(w.scores + (first + q) * largest_page + 16 * i) = sums[q][i];
}

template<class T>
PARLEY_INLINE void score_turned(workspace& w, const T* keys, std::int64_t count, std::int64_t stride,
                                std::int64_t head_dim, std::int64_t queries) {
  for (std::int64_t row = 0; row < largest_page; ++row)
    for (std::int64_t d = 0; d < head_dim; ++d)
      w.keys[d * largest_page + row] = row < count ? widen(keys[row * stride + d]) : 0;
  for (std::int64_t q = 0; q < queries; q += 4) score_four(w, q, head_dim);
}

/// Prefetches the keys ahead, and the rows of `values` that belong to the keys.
template<class T>
PARLEY_INLINE void score_rows(workspace& w, const float* keys, std::int64_t count, std::int64_t stride,
                              std::int64_t head_dim, std::int64_t queries, const T* values, std::int64_t value_stride) {
  for (std::int64_t q = 0; q < queries; ++q) {
    const auto* query = w.queries + q * w.width;
    for (std::int64_t row = 0; row < count; ++row) {
      const auto* key = keys + row * stride;
      if (q == 0) {
        if (row + rows_ahead < count) prefetch(key + rows_ahead * stride, head_dim);
        prefetch(values + row * value_stride, head_dim);
      }
      auto sum = 0.0F;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t d = 0; d < head_dim; ++d) sum += query[d] * key[d];
      w.scores[q * largest_page + row] = sum;
    }
  }
}

/// Turns the scores of the first `seen` rows into weights of query q's running softmax; other rows get weight 0.
PARLEY_INLINE void weigh(workspace& w, std::int64_t q, std::int64_t seen, std::int64_t head_dim) {
  auto* scores = w.scores + q * largest_page;
  auto* sums = w.sums + q * w.width;
  auto top = w.top[q];
#pragma omp simd reduction(max : top)
  for (std::int64_t i = 0; i < seen; ++i) top = scores[i] > top ? scores[i] : top;
  const auto fade = exp(w.top[q] - top);
  auto total = 0.0F;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < seen; ++i) {
    scores[i] = exp(scores[i] - top);
    total += scores[i];
  }
  for (auto i = seen; i < largest_page; ++i) scores[i] = 0;
  w.total[q] = w.total[q] * fade + total;
  w.top[q] = top;
#pragma omp simd
  for (std::int64_t d = 0; d < head_dim; ++d) sums[d] *= fade;
}

/// sums += weights x values, for one query.
PARLEY_INLINE void add_values(workspace& w, std::int64_t q, std::int64_t seen, const float* values, std::int64_t stride,
                              std::int64_t head_dim) {
  const auto* weights = w.scores + q * largest_page;
  auto* sums = w.sums + q * w.width;
  std::int64_t row = 0;
  for (; row + 4 <= seen; row += 4) {
    const auto *a = values + row * stride, *b = a + stride, *c = b + stride, *e = c + stride;
    const auto wa = weights[row], wb = weights[row + 1], wc = weights[row + 2], we = weights[row + 3];
#pragma omp simd
    for (std::int64_t d = 0; d < head_dim; ++d) sums[d] += (wa * a[d] + wb * b[d]) + (wc * c[d] + we * e[d]);
  }
  for (; row < seen; ++row) {
    const auto* value = values + row * stride;
    const auto weight = weights[row];
#pragma omp simd
    for (std::int64_t d = 0; d < head_dim; ++d) sums[d] += weight * value[d];
  }
}

/// The same for four queries and `width` vectors of the head at a time, with the sums in registers.
template<int width>
PARLEY_INLINE void add_values_to_four(workspace& w, std::int64_t q, std::int64_t d, std::int64_t count,
                                      const float* values, std::int64_t stride) {
  vector sums[4][width];
  auto* place = w.sums + q * w.width + d;
  const auto* weights = w.scores + q * largest_page;
  for (auto i = 0; i < 4; ++i)
    for (auto v = 0; v < width; ++v) sums[i][v] = at(place + i * w.width + 16 * v);
  for (std::int64_t row = 0; row < count; ++row) {
    const auto* value = values + row * stride + d;
    for (auto v = 0; v < width; ++v) {
      const vector here = at(value + 16 * v);
      for (auto i = 0; i < 4; ++i) sums[i][v] += weights[i * largest_page + row] * here;
    }
  }
  for (auto i = 0; i < 4; ++i)
    for (auto v = 0; v < width; ++v) at(place + i * w.width + 16 * v) = sums[i][v];
}

PARLEY_INLINE void add_values_to_four(workspace& w, std::int64_t q, std::int64_t count, const float* values,
                                      std::int64_t stride, std::int64_t head_dim) {
  std::int64_t d = 0;
  for (; d + 64 <= head_dim; d += 64) add_values_to_four<4>(w, q, d, count, values, stride);
  for (; d + 48 <= head_dim; d += 48) add_values_to_four<3>(w, q, d, count, values, stride);
  for (; d < head_dim; d += 16) add_values_to_four<1>(w, q, d, count, values, stride);
}

/// Starts with `count` queries; row(q) is the address of query q.
template<class Row>
PARLEY_INLINE void take_queries(workspace& w, std::int64_t count, std::int64_t head_dim, const Row& row) {
  const auto scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
  w.width = (head_dim + lanes - 1) / lanes * lanes;
  for (std::int64_t q = 0; q < count; ++q) {
    const auto* from = row(q);
#pragma omp simd
    for (std::int64_t d = 0; d < head_dim; ++d) {
      w.queries[q * w.width + d] = widen(from[d]) * scale;
      w.sums[q * w.width + d] = 0;
    }
    w.top[q] = minus_infinity;
    w.total[q] = 0;
  }
  for (auto q = count; q < (count + 3) / 4 * 4; ++q) { // padding: computed but not used
    std::fill_n(w.queries + q * w.width, head_dim, 0.0F);
    std::fill_n(w.sums + q * w.width, head_dim, 0.0F);
  }
}

/// Processes up to a page of rows with all queries; query q sees the first seen(q) of them.
template<class T, class Seen>
PARLEY_INLINE void visit(workspace& w, std::int64_t count, const T* keys, const T* page_values, std::int64_t here,
                         std::int64_t key_stride, std::int64_t head_dim, const Seen& seen) {
  std::int64_t stride = 0;
  if (count >= worth_turning) {
    score_turned(w, keys, here, key_stride, head_dim, count);
  } else {
    const auto* dense = as_floats(keys, here, head_dim, key_stride, w.keys, stride);
    score_rows(w, dense, here, stride, head_dim, count, page_values, key_stride);
  }
  const auto* values = as_floats(page_values, here, head_dim, key_stride, w.values, stride);
  for (std::int64_t q = 0; q < count; ++q) weigh(w, q, seen(q), head_dim);
  std::int64_t q = 0;
  if (head_dim % lanes == 0 && count >= worth_turning)
    for (; q < count; q += 4) add_values_to_four(w, q, here, values, stride, head_dim);
  for (; q < count; ++q) add_values(w, q, seen(q), values, stride, head_dim);
}

template<class T, class Row>
PARLEY_INLINE void give_results(const workspace& w, std::int64_t count, std::int64_t head_dim, const Row& row) {
  for (std::int64_t q = 0; q < count; ++q) {
    T* into = row(q);
    const auto share = 1.0F / w.total[q];
#pragma omp simd
    for (std::int64_t d = 0; d < head_dim; ++d) narrow(w.sums[q * w.width + d] * share, into[d]);
  }
}

template<class T>
PARLEY_INLINE void attend_pages(const T* queries, const paged_head<T>& past, const query_rows& shape,
                                std::int64_t head_dim, T* to) {
  workspace w;
  const auto all = shape.rows * shape.heads;
  for (std::int64_t first = 0; first < all; first += most_queries) {
    const auto count = std::min(most_queries, all - first);
    const auto place = [&](std::int64_t q) {
      return (first + q) / shape.heads * shape.stride + (first + q) % shape.heads * head_dim;
    };
    take_queries(w, count, head_dim, [&](std::int64_t q) { return queries + place(q); });
    const auto end = shape.past + (first + count - 1) / shape.heads + 1; // rows that the last query sees
    for (std::int64_t begin = 0; begin < end; begin += past.page_rows) {
      const auto here = std::min(past.page_rows, end - begin);
      const auto from = std::int64_t{past.pages[begin / past.page_rows]} * past.page_rows * past.key_stride;
      const auto see = shape.past + 1 - begin; // each later row sees one more
      visit(w, count, past.keys + from, past.values + from, here, past.key_stride, head_dim,
            [&](std::int64_t q) { return std::clamp<std::int64_t>(see + (first + q) / shape.heads, 0, here); });
    }
    give_results<T>(w, count, head_dim, [&](std::int64_t q) { return to + place(q); });
  }
}

PARLEY_INLINE void attend_pieces(rows_apart<const float> queries, std::int64_t rows, std::span<const head_piece> past,
                                 std::int64_t head_dim, rows_apart<float> to) {
  workspace w;
  for (std::int64_t first = 0; first < rows; first += most_queries) {
    const auto count = std::min(most_queries, rows - first);
    take_queries(w, count, head_dim, [&](std::int64_t q) { return queries.first + (first + q) * queries.stride; });
    for (const auto& piece : past)
      for (std::int64_t begin = 0; begin < piece.rows; begin += largest_page) {
        const auto here = std::min(largest_page, piece.rows - begin), from = begin * piece.stride;
        visit(w, count, piece.keys + from, piece.values + from, here, piece.stride, head_dim,
              [here](std::int64_t) { return here; });
      }
    give_results<float>(w, count, head_dim, [&](std::int64_t q) { return to.first + (first + q) * to.stride; });
  }
}

} // namespace

PARLEY_FOR_EACH_CPU void attend(const float* queries, const paged_head<float>& past, const query_rows& shape,
                                std::int64_t head_dim, float* to) {
  attend_pages(queries, past, shape, head_dim, to);
}

PARLEY_FOR_EACH_CPU void attend(const bfloat16* queries, const paged_head<bfloat16>& past, const query_rows& shape,
                                std::int64_t head_dim, bfloat16* to) {
  attend_pages(queries, past, shape, head_dim, to);
}

PARLEY_FOR_EACH_CPU void attend(rows_apart<const float> queries, std::int64_t rows, std::span<const head_piece> past,
                                std::int64_t head_dim, rows_apart<float> to) {
  attend_pieces(queries, rows, past, head_dim, to);
}

} // namespace parley::inference::cpu
