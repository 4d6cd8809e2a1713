#include "protocol/session/unit_backlog.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace parley::protocol::test {

namespace {

std::vector<gathered_unit> units_of(std::uint64_t append, int count, bool forced = false) {
  std::vector<gathered_unit> units;
  for (int i = 0; i < count; ++i) {
    gathered_unit unit;
    unit.append = append;
    unit.force_listen = forced;
    units.push_back(std::move(unit));
  }
  return units;
}

std::string show(unit_backlog& backlog) {
  std::string text;
  while (const auto unit = backlog.pop()) text += std::to_string(unit->append) + (unit->force_listen ? "!" : "") + " ";
  return text;
}

void add(unit_backlog& backlog, std::uint64_t append, int count, std::size_t limit, bool forced = false) {
  auto units = units_of(append, count, forced);
  backlog.push(units);
  backlog.trim(limit, append);
}

} // namespace

TEST_CASE("the newest units win") {
  unit_backlog backlog;
  for (std::uint64_t append = 1; append <= 5; ++append) add(backlog, append, 1, 2);
  CHECK(backlog.dropped() == 3);
  CHECK(show(backlog) == "4 5 ");
}

TEST_CASE("the frames of units that wait have a size that they do not exceed; the oldest go") {
  unit_backlog backlog(60);
  const auto picture = std::make_shared<const std::string>(16u << 20, 'x');
  for (std::uint64_t append = 1; append <= 8; ++append) {
    auto units = units_of(append, 1);
    units.front().frames.assign(1, picture);
    backlog.push(units);
    backlog.trim(2, append);
  }
  backlog.bring_back();
  REQUIRE(backlog.size() == 8);
  for (std::uint64_t append = 1; append <= 8; ++append) CHECK(backlog.pop()->frames.size() == (append > 4 ? 1 : 0));
}

TEST_CASE("units of one append never push each other out") {
  unit_backlog backlog;
  add(backlog, 1, 1, 2);
  add(backlog, 2, 10, 2);
  CHECK(backlog.size() == 10);
  CHECK(backlog.dropped() == 1);
  add(backlog, 3, 1, 2);
  CHECK(backlog.dropped() == 10);
  CHECK(show(backlog) == "2 3 ");
}

TEST_CASE("an interrupt is never lost") {
  unit_backlog backlog;
  add(backlog, 1, 1, 2, true);
  add(backlog, 2, 1, 2);
  add(backlog, 3, 1, 2);
  add(backlog, 4, 1, 2);
  CHECK(show(backlog) == "3! 4 ");
}

TEST_CASE("what was dropped while a step ran comes back until the next one begins") {
  unit_backlog backlog(3);
  for (std::uint64_t append = 1; append <= 4; ++append) add(backlog, append, 1, 2, append == 1);
  CHECK(backlog.dropped() == 2);
  backlog.bring_back();
  CHECK(backlog.dropped() == 0);
  CHECK(show(backlog) == "1! 2 3 4 ");
  add(backlog, 5, 1, 1);
  add(backlog, 6, 1, 1);
  CHECK(backlog.pop()->append == 6);
  backlog.bring_back();
  CHECK(backlog.size() == 0);
  CHECK(backlog.dropped() == 1);
}

TEST_CASE("no more comes back than is kept aside, and still no interrupt is lost") {
  unit_backlog backlog(1);
  for (std::uint64_t append = 1; append <= 4; ++append) add(backlog, append, 1, 1, append == 1);
  backlog.bring_back();
  CHECK(backlog.dropped() == 2);
  CHECK(show(backlog) == "3! 4 ");
}

TEST_CASE("context of dropped units passes to the next one, in its order") {
  for (const std::size_t keep_aside : {0U, 8U}) {
    unit_backlog backlog(keep_aside);
    for (std::uint64_t append = 1; append <= 5; ++append) {
      auto units = units_of(append, 1);
      units[0].context.push_back({conversation::role::user, std::to_string(append)});
      backlog.push(units);
      backlog.trim(2, append);
    }
    CHECK(backlog.dropped() == 3);
    const auto all = backlog.context_bytes();
    CHECK(all >= 5);
    const auto read = [&] {
      std::string text;
      const auto unit = backlog.pop();
      REQUIRE(unit);
      for (const auto& each : unit->context) text += each.text;
      return text;
    };
    CHECK(read() == "1234");
    CHECK(backlog.context_bytes() < all);
    CHECK(read() == "5");
    CHECK(backlog.context_bytes() == 0);
  }
}

TEST_CASE("context is read once when dropped units come back") {
  unit_backlog backlog(8);
  for (std::uint64_t append = 1; append <= 3; ++append) {
    auto units = units_of(append, 1);
    units[0].context.push_back({conversation::role::user, std::to_string(append)});
    backlog.push(units);
    backlog.trim(1, append);
  }
  backlog.bring_back();
  std::string text;
  while (const auto unit = backlog.pop())
    for (const auto& each : unit->context) text += each.text;
  CHECK(text == "123");
}

} // namespace parley::protocol::test
