#include "base/byte_budget.hpp"

#include <catch2/catch.hpp>

using parley::base::byte_budget;

TEST_CASE("an answer has its share until it goes") {
  byte_budget budget(100, 60);
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

TEST_CASE("a share grows as its message does, and keeps what it has when there is no more") {
  byte_budget budget(100, 60);
  {
    auto message = budget.open("a");
    CHECK(message.grow_to(20));
    CHECK(message.grow_to(10)); // it never shrinks
    CHECK(message.bytes() == 20);
    CHECK_FALSE(message.grow_to(61));
    CHECK(message.bytes() == 20);
    const auto moved = std::move(message);
    CHECK(moved.bytes() == 20);
    CHECK_FALSE(budget.take("a", 41));
    CHECK(budget.take("a", 40));
    CHECK_FALSE(budget.take("b", 81));
  }
  CHECK(budget.take("a", 60));
}

TEST_CASE("a share gives back what it does not need any more") {
  byte_budget budget(100, 60);
  auto share = budget.take("a", 60);
  REQUIRE(share);
  share->shrink_to(70);
  CHECK(share->bytes() == 60);
  share->shrink_to(20);
  CHECK(share->bytes() == 20);
  auto another = share->open_another();
  CHECK(another.grow_to(40));
  CHECK_FALSE(budget.take("a", 1));
  share.reset();
  CHECK(budget.take("a", 20));
}

TEST_CASE("a share may outlive its budget") {
  std::optional<byte_budget::share> share;
  {
    byte_budget budget(10, 10);
    share = budget.take("a", 10);
  }
  CHECK(share);
}
