#include "client/load_scenario.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <set>

using namespace parley::client;
namespace protocol = parley::protocol;

TEST_CASE("people come evenly, in all modes and dialects") {
  const protocol::mode modes[] = {protocol::mode::audio, protocol::mode::chat, protocol::mode::video};
  const auto roles = cast_roles(12, modes, true, 6, 1);
  REQUIRE(roles.size() == 12);
  CHECK(roles[0].start == 0);
  CHECK(roles[6].start == Approx(3));
  CHECK(roles[11].start < 6);
  std::set<std::pair<int, int>> kinds;
  std::set<std::uint64_t> seeds;
  for (const auto& role : roles) {
    kinds.emplace(static_cast<int>(role.mode), static_cast<int>(role.spoken));
    seeds.insert(role.seed);
  }
  CHECK(kinds.size() == 5); // chat has one dialect
  CHECK(seeds.size() == 12);
  const auto again = cast_roles(12, modes, true, 6, 1);
  CHECK(std::equal(roles.begin(), roles.end(), again.begin(),
                   [](const auto& a, const auto& b) { return a.seed == b.seed && a.spoken == b.spoken; }));
  for (const auto& role : cast_roles(4, modes, false, 0, 1)) CHECK(role.spoken == protocol::dialect::current);
}

TEST_CASE("seconds are due one after the other, within the jitter") {
  const load_script script{{3}};
  load_habits habits;
  habits.jitter = 0.2;
  load_pace pace(script, habits, 7);
  auto before = -1.0;
  auto moved = 0.0;
  for (std::size_t n = 0; n < 1000; ++n) {
    const auto due = pace.due(n);
    CHECK(due > before);
    CHECK(std::abs(due - static_cast<double>(n)) <= 0.2);
    moved = std::max(moved, std::abs(due - static_cast<double>(n)));
    before = due;
  }
  CHECK(pace.due(0) == 0);
  CHECK(moved > 0.1);
}

TEST_CASE("recordings are said whole, with silence between them") {
  const load_script script{{3, 2}};
  CHECK(script.silent_unit() == 5);
  load_habits habits;
  load_pace pace(script, habits, 7);
  std::size_t silent = 0, first = 0, second = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto unit = pace.next_unit();
    REQUIRE(unit <= 5);
    if (unit == 5) {
      ++silent;
    } else if (unit == 0) {
      CHECK(pace.next_unit() == 1);
      CHECK(pace.next_unit() == 2);
      ++first;
    } else {
      CHECK(unit == 3); // each recording starts with its first second
      CHECK(pace.next_unit() == 4);
      ++second;
    }
  }
  CHECK(silent > 300);
  CHECK(first > 200);
  CHECK(second > 200);
}

TEST_CASE("thinking takes as long as it should on average") {
  const load_script script{{1}};
  load_habits habits;
  habits.think = 3;
  habits.barge_in = 0.25;
  load_pace pace(script, habits, 1);
  double all = 0;
  int interruptions = 0;
  for (int i = 0; i < 4000; ++i) {
    all += pace.thinking_time();
    interruptions += pace.interrupts() ? 1 : 0;
  }
  CHECK(all / 4000 == Approx(3).margin(0.2));
  CHECK(interruptions == Approx(1000).margin(100));
}

TEST_CASE("seconds that tell the model to listen come in stretches, and have their share") {
  const load_script script{{3}};
  for (const auto share : {0.0, 0.25, 0.6, 1.0}) {
    load_habits habits;
    habits.listening = share;
    load_pace pace(script, habits, 7);
    constexpr int seconds = 100000;
    auto told = 0, changes = 0;
    auto before = pace.tells_to_listen();
    for (auto i = 0; i < seconds; ++i) {
      const auto now = pace.tells_to_listen();
      told += now ? 1 : 0;
      changes += now != before ? 1 : 0;
      before = now;
    }
    CHECK(told == Approx(share * seconds).margin(0.02 * seconds));
    // Listening and speaking take ten seconds together.
    CHECK(changes == Approx(share > 0 && share < 1 ? 2 * seconds / 10 : 0).margin(0.02 * seconds));
  }
}

TEST_CASE("who tells nobody to listen draws no number for it") {
  const load_script script{{3}};
  const load_habits habits;
  load_pace one(script, habits, 7), other(script, habits, 7);
  for (auto i = 0; i < 100; ++i) {
    CHECK_FALSE(one.tells_to_listen());
    CHECK(one.due(1) == other.due(1));
  }
}
