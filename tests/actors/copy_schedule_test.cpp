#include "actors/log/copy_schedule.hpp"

#include "actors/log/log_owner.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <string>

using namespace parley::actors;

TEST_CASE("of two owners the one that took the session up last wins") {
  CHECK(log_owner{2, 1} > log_owner{1, 9});
  CHECK(log_owner{2, 9} > log_owner{2, 1});
  CHECK(log_owner{2, 9} == log_owner{2, 9});
}

TEST_CASE("logs are sent in turns, from where they were left, and only as much as may be under way") {
  copy_schedule schedule(10, 4);
  schedule.begin({"a", 1}, 0);
  schedule.begin({"b", 1}, 3);
  CHECK_FALSE(schedule.next());
  schedule.grew("a", 7);
  schedule.grew("b", 2);
  schedule.grew("nobody", 100);
  CHECK(schedule.behind() == 9);
  CHECK_FALSE(schedule.next()); // no peer yet
  schedule.link_up();

  const auto check_next = [&](const std::string& id, std::size_t offset, std::size_t bytes) {
    const auto part = schedule.next();
    REQUIRE(part);
    CHECK(part->session_id == id);
    CHECK(part->offset == offset);
    CHECK(part->bytes == bytes);
    CHECK(part->epoch == (id == "b" ? 3u : 0u));
  };
  check_next("a", 0, 4);
  check_next("b", 0, 2);
  CHECK(schedule.complete() == 1);
  check_next("a", 4, 3);
  CHECK(schedule.complete() == 2);
  CHECK_FALSE(schedule.next());
  schedule.grew("b", 9);
  check_next("b", 2, 1); // ten are under way
  CHECK_FALSE(schedule.next());
  CHECK(schedule.behind() == 16);
  schedule.confirmed(4);
  check_next("b", 3, 4);
  CHECK_FALSE(schedule.next());
  schedule.confirmed(100);
  check_next("b", 7, 2);
  CHECK(schedule.behind() == 2);
  schedule.confirmed(2);
  CHECK(schedule.behind() == 0);
}

TEST_CASE("a new peer gets every log from its beginning, and none that has ended") {
  copy_schedule schedule(100, 100);
  schedule.begin({"a", 1}, 0);
  schedule.begin({"b", 1}, 0);
  schedule.grew("a", 5);
  schedule.grew("b", 6);
  schedule.link_up();
  CHECK(schedule.next());
  CHECK(schedule.next());
  schedule.link_down();
  schedule.grew("a", 8);
  CHECK_FALSE(schedule.next());
  CHECK(schedule.complete() == 0);
  schedule.end("b");
  CHECK(schedule.behind() == 8);
  schedule.link_up();
  const auto part = schedule.next();
  REQUIRE(part);
  CHECK(part->session_id == "a");
  CHECK(part->offset == 0);
  CHECK(part->bytes == 8);
  CHECK_FALSE(schedule.next());
  CHECK(schedule.behind() == 8);
  schedule.confirmed(8);
  CHECK(schedule.behind() == 0);
}
