#include "base/lru_cache.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <string_view>

using parley::base::lru_cache;

namespace {

std::string keys(const lru_cache<std::string, int>& cache) {
  std::string all;
  for (const auto& [key, value] : cache) all += key;
  return all;
}

} // namespace

TEST_CASE("the least recently used item is dropped first") {
  lru_cache<std::string, int> cache(3);
  cache.put("a", 1);
  cache.put("b", 2);
  cache.put("c", 3);
  CHECK(keys(cache) == "cba");
  CHECK(*cache.find("a") == 1);
  CHECK(keys(cache) == "acb");
  cache.put("d", 4);
  CHECK(keys(cache) == "dac");
  CHECK(cache.find("b") == nullptr);
  CHECK(cache.size() == 3);
  CHECK(cache.drop_oldest());
  CHECK(keys(cache) == "da");
}

TEST_CASE("a key that is there keeps its value and is used") {
  lru_cache<std::string, int> cache(2);
  cache.put("a", 1);
  cache.put("b", 2);
  cache.put("a", 9);
  CHECK(*cache.find(std::string_view("a")) == 1);
  CHECK(keys(cache) == "ab");
}

TEST_CASE("a cache without room keeps nothing") {
  lru_cache<std::string, int> cache(0);
  cache.put("a", 1);
  CHECK(cache.size() == 0);
  CHECK_FALSE(cache.drop_oldest());
}
