#include "net/http/answer_budget.hpp"

#include <catch2/catch.hpp>

using parley::net::answer_budget;

TEST_CASE("an answer has its share until it goes") {
  answer_budget budget(100, 60);
  auto first = budget.take("a", 60);
  REQUIRE(first);
  CHECK_FALSE(budget.has_room("a"));
  CHECK_FALSE(budget.take("a", 1));
  CHECK(budget.has_room("b"));
  CHECK_FALSE(budget.take("b", 41)); // all together
  auto second = budget.take("b", 40);
  REQUIRE(second);
  CHECK_FALSE(budget.has_room("c"));
  first.reset();
  CHECK(budget.has_room("c"));
  CHECK(budget.take("a", 60));
  CHECK_FALSE(budget.take("c", 61)); // of each
  second = budget.take("c", 60);     // its old share goes
  CHECK(budget.take("a", 40));
}

TEST_CASE("a share may outlive its budget") {
  std::optional<answer_budget::share> share;
  {
    answer_budget budget(10, 10);
    share = budget.take("a", 10);
  }
  CHECK(share);
}
