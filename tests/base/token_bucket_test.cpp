#include "base/token_bucket.hpp"

#include <catch2/catch.hpp>

using parley::base::token_bucket;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("a token bucket holds so much at once, and gets it back with time") {
  const token_bucket::time_point start{};
  token_bucket bucket(3, 2);
  CHECK(bucket.full(start));
  CHECK(bucket.take(1, start));
  CHECK(bucket.take(2, start));
  CHECK_FALSE(bucket.take(1, start));
  CHECK_FALSE(bucket.take(1, start + milliseconds(499)));
  CHECK(bucket.take(1, start + milliseconds(500)));
  CHECK(bucket.left(start + seconds(100)) == 3);
  CHECK(bucket.take(3, start + seconds(100)));
}

TEST_CASE("what a token bucket cannot give is not taken from it") {
  const token_bucket::time_point start{seconds(5)};
  token_bucket bucket(4, 1);
  CHECK(bucket.take(3, start));
  CHECK_FALSE(bucket.take(2, start));
  CHECK(bucket.left(start) == 1);
}

TEST_CASE("a token bucket knows when it will have enough") {
  const token_bucket::time_point start{seconds(5)};
  token_bucket bucket(8, 3);
  CHECK(bucket.when(8, start) == start);
  REQUIRE(bucket.take(8, start));
  for (const double amount : {0.1, 1.0, 1.0 / 3, 7.9}) {
    auto again = bucket;
    const auto due = again.when(amount, start);
    CHECK(due > start);
    CHECK_FALSE(again.take(amount, due - milliseconds(3)));
    CHECK(again.take(amount, due));
  }
}

TEST_CASE("a clock that goes back gives a token bucket nothing") {
  const token_bucket::time_point start{seconds(5)};
  token_bucket bucket(2, 1);
  CHECK(bucket.take(2, start));
  CHECK_FALSE(bucket.take(1, start - seconds(4)));
}
