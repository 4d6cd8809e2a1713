#include "inference/llm/kv_pool.hpp"

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

TEST_CASE("rewound rows leave room that is certain") {
  const kv_pool pool(small(), 1, 4 * page, at::kFloat, at::kCPU);
  auto cache = pool.open();
  fill(cache, 3 * page, 0);
  auto other = cache.fork();
  const content before(cache);
  CHECK_THROWS_AS(cache.rewind(page + 5, 2 * page), std::runtime_error); // needs three pages, one is free
  CHECK(content(cache) == before);
  CHECK(pool.free_pages() == 1);
  cache.rewind(page + 5, 20); // needs one page
  CHECK(cache.length() == page + 5);
  CHECK(pool.free_pages() == 0);
  fill(cache, 20, 0.25F);
  CHECK(content(other) == before);
  CHECK(at::equal(cache.keys(0).narrow(0, 0, page + 5), before.sides[0].narrow(0, 0, page + 5)));
  CHECK_THROWS_AS(cache.reserve(page), std::runtime_error);
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
