#include "inference/llm/cache_slide.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <numeric>

using namespace parley::inference;
using namespace parley::inference::llm;

namespace {

constexpr auto page = kv_pool::page_tokens;

llm_config small() {
  llm_config c;
  c.layers = 2;
  c.kv_heads = 1;
  c.head_dim = 4;
  return c;
}

/// Adds rows whose values count upwards from the cache's length, plus `mark`.
void fill(kv_cache& cache, std::int64_t rows, float mark) {
  cache.reserve(rows);
  std::vector<std::int64_t> places;
  cache.rows_to_write(rows, places);
  const auto values = (at::arange(rows, at::kFloat) + static_cast<double>(cache.length()) + mark).view({-1, 1, 1});
  for (auto layer = 0; layer < 2; ++layer)
    cache.write(layer, at::tensor(places, at::kLong), values.expand({rows, 1, 4}).contiguous(),
                values.expand({rows, 1, 4}).contiguous());
  cache.commit(rows);
}

struct content {
  std::int64_t length;
  std::vector<at::Tensor> sides;

  explicit content(const kv_cache& of) : length(of.length()) {
    for (auto layer = 0; layer < 2; ++layer) {
      sides.push_back(of.keys(layer).clone());
      sides.push_back(of.values(layer).clone());
    }
  }
  bool operator==(const content& other) const {
    return length == other.length && std::equal(sides.begin(), sides.end(), other.sides.begin(),
                                                [](const auto& a, const auto& b) { return at::equal(a, b); });
  }
};

} // namespace

TEST_CASE("rows that can't be dropped for want of a page are all still there") {
  const rope positions(4, 1e4, at::kCPU);
  for (const auto begin : {0, 10, page, page + 1, 2 * page - 1}) {
    const kv_pool pool(small(), 1, 5 * page, at::kFloat, at::kCPU);
    auto cache = pool.open();
    fill(cache, 3 * page - 7, 0.5F);
    auto other = cache.fork();
    auto rest = pool.open();
    rest.reserve(2 * page); // the pool is full
    const content before(cache);
    INFO("from row " << begin);
    CHECK_THROWS_AS(cache.drop(begin, 20, positions), std::runtime_error);
    CHECK(content(cache) == before);
    CHECK(content(other) == before);
    CHECK(pool.free_pages() == 0);
    { const auto gone = std::move(rest); }
    rest = pool.open();
    CHECK(pool.free_pages() == 2);
    if (begin >= page) { // needs to write at most two pages
      cache.drop(begin, 20, positions);
      CHECK(cache.length() == before.length - 20);
      CHECK(content(other) == before);
      CHECK(at::equal(cache.values(0).narrow(0, 0, begin), before.sides[1].narrow(0, 0, begin)));
      CHECK(at::equal(cache.values(1).narrow(0, begin, cache.length() - begin),
                      before.sides[3].narrow(0, begin + 20, cache.length() - begin)));
    }
  }
}

TEST_CASE("a slide that lacks pages changes no row, and copies pages that are shared") {
  const rope positions(4, 1e4, at::kCPU);
  for (const bool fits : {false, true}) {
    const kv_pool pool(small(), 1, 4 * page, at::kFloat, at::kCPU);
    auto cache = pool.open();
    fill(cache, 3 * page, 0);
    auto other = cache.fork();
    const content before(cache);
    const std::int64_t keep = (fits ? 2 : 1) * page + 5; // one page is free, and so many are shared and written to
    cache_slide slide(cache, keep, 0, {{keep + 10, keep, 3 * page - keep - 10}}, 3 * page - 10, positions);
    CHECK(slide.pages() == (fits ? 1 : 2));
    if (!fits) {
      CHECK_THROWS_AS(slide.advance(1), std::runtime_error);
      CHECK(content(cache) == before);
    } else {
      slide.advance(1);
      CHECK(slide.left() == 1);
      slide.advance(5);
      CHECK(slide.left() == 0);
      CHECK(cache.length() == 3 * page - 10);
      CHECK(pool.free_pages() == 0);
      CHECK(at::equal(cache.keys(0).narrow(0, 0, keep), before.sides[0].narrow(0, 0, keep)));
    }
    CHECK(content(other) == before);
  }
}

TEST_CASE("rows that move behind a gap are those that were dropped around, wherever the cache is parked meanwhile") {
  const rope positions(4, 1e4, at::kCPU);
  const kv_pool pool(small(), 4, 8 * page, at::kFloat, at::kCPU);
  // Some rows move back, since more is inserted than was dropped before them, the others forward.
  const std::vector<row_move> moves{{12, 15, 5}, {page + 3, 20, page + 40}, {4 * page, page + 60, 7}};
  constexpr std::int64_t keep = 10, gap = 5, length = page + 67, whole = 4 * page + 9;
  auto expected = pool.open();
  fill(expected, whole, 0.25F);
  std::vector<kv_segment> parts;
  for (const auto& move : moves) {
    auto part = expected.copy_from(move.from);
    part.keys = part.keys.narrow(1, 0, move.rows);
    part.values = part.values.narrow(1, 0, move.rows);
    parts.push_back(part);
  }
  expected.truncate(keep);
  fill(expected, gap, 0.75F);
  for (const auto& part : parts) expected.append(part, positions);
  for (auto parked = 0; parked < 4; ++parked) {
    auto cache = pool.open();
    fill(cache, whole, 0.25F);
    const auto park = [&](int now) {
      if (parked != now) return;
      cache.park();
      CHECK(cache.pages() == 0);
      cache.restore();
    };
    const auto moved = pool.moved_rows();
    cache_slide slide(cache, keep, gap, moves, length, positions);
    park(0);
    slide.advance(1);
    park(1);
    slide.advance(1);
    CHECK(pool.moved_rows() - moved == 2 * (5 + page + 40 + 7)); // once in each of two layers
    CHECK(cache.length() == keep);
    park(2);
    CHECK(cache.pages_to_take(gap) == 0);
    fill(cache, gap - 1, 0.75F);
    cache.truncate(keep); // a call that failed
    fill(cache, gap, 0.75F);
    park(3);
    cache.close_gap();
    CHECK(content(cache) == content(expected));
    CHECK(cache.pages() == kv_pool::pages_of(length));
  }
}

TEST_CASE("a parked cache holds no page and comes back as it was") {
  const kv_pool pool(small(), 1, 6 * page, at::kFloat, at::kCPU);
  auto cache = pool.open();
  fill(cache, 2 * page + 5, 0.25F);
  const content before(cache);
  auto other = cache.fork();
  CHECK(cache.pages_to_take(1) == 1); // a copy of the shared last page
  CHECK(other.pages_to_take(page) == 2);
  cache.park();
  cache.park();
  CHECK(cache.parked());
  CHECK(cache.pages() == 0);
  CHECK(cache.length() == before.length);
  CHECK(cache.pages_to_take(0) == 3);
  CHECK(cache.pages_to_take(page) == 4);
  CHECK(pool.free_pages() == 3);
  CHECK(content(other) == before);

  auto rest = pool.open();
  fill(rest, page, 0);
  CHECK_THROWS(cache.restore());
  CHECK(cache.parked());
  CHECK(pool.free_pages() == 2);
  rest.truncate(0);
  cache.restore();
  CHECK_FALSE(cache.parked());
  CHECK(content(cache) == before);
  CHECK(pool.free_pages() == 0);
  other.truncate(0);

  cache.park();
  cache.truncate(page + 1);
  cache.restore();
  CHECK(cache.pages() == 2);
  CHECK(at::equal(cache.keys(1), before.sides[2].narrow(0, 0, page + 1)));
  cache.park();
  cache.truncate(0);
  CHECK_FALSE(cache.parked());
  CHECK(pool.free_pages() == pool.pages());
}
