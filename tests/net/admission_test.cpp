#include "net/access/admission.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <optional>
#include <vector>

using namespace parley::net;
using verdict = admission::verdict;

namespace {

const admission::time_point start{std::chrono::hours(1)};

} // namespace

TEST_CASE("without limits everybody is welcome") {
  admission all({});
  std::vector<admission::reservation> passes;
  for (int i = 0; i < 1000; ++i) {
    auto [said, pass] = all.enter("a", "", start);
    CHECK(said == verdict::welcome);
    passes.push_back(std::move(pass));
  }
}

TEST_CASE("one client has so many sessions, by address and by key") {
  admission all({.sessions_per_address = 2, .sessions_per_key = 3});
  auto a1 = all.enter("a", "k", start);
  std::optional<std::pair<verdict, admission::reservation>> a2(all.enter("a", "k", start));
  CHECK(a2->first == verdict::welcome);
  CHECK(all.enter("a", "k", start).first == verdict::too_many_sessions);
  CHECK(all.enter("a", "", start).first == verdict::too_many_sessions);
  auto b1 = all.enter("b", "k", start);
  CHECK(b1.first == verdict::welcome);
  CHECK(all.enter("c", "k", start).first == verdict::too_many_sessions);
  CHECK(all.enter("c", "other", start).first == verdict::welcome);
  a2.reset();
  CHECK(all.enter("a", "k", start).first == verdict::welcome);
}

TEST_CASE("what a connection starts later comes from the same starts, of its address and its key") {
  std::shared_ptr<parley::actors::start_limit> later, unlimited;
  {
    admission all({.starts_per_address = 3, .starts_per_key = 5});
    later = all.starts_of("a", "k");
    CHECK(later->left(start));
    CHECK(all.enter("a", "k", start).first == verdict::welcome);
    for (int i = 0; i < 2; ++i) {
      CHECK(later->left(start));
      later->count(start);
    }
    CHECK_FALSE(later->left(start));
    CHECK(all.enter("a", "", start).first == verdict::too_many_starts);
    CHECK(all.enter("b", "k", start).first == verdict::welcome);
    CHECK(all.enter("c", "k", start).first == verdict::welcome);
    CHECK(all.enter("d", "k", start).first == verdict::too_many_starts);
    for (int i = 0; i < 100; ++i) later->count(start); // what is not left cannot be owed
    CHECK(all.enter("a", "k", start + std::chrono::seconds(21)).first == verdict::welcome);
    unlimited = admission({}).starts_of("a", "k");
  }
  for (int i = 0; i < 100; ++i) unlimited->count(start);
  CHECK(unlimited->left(start));
  CHECK(later->left(start + std::chrono::minutes(2))); // it outlives the admission
}

TEST_CASE("one client starts so many sessions a minute") {
  admission all({.starts_per_address = 3});
  const auto starts = [&](admission::time_point now) { return all.enter("a", "", now).first == verdict::welcome; };
  for (int i = 0; i < 3; ++i) CHECK(starts(start));
  CHECK_FALSE(starts(start));
  CHECK(all.enter("b", "", start).first == verdict::welcome);
  CHECK_FALSE(starts(start + std::chrono::seconds(19)));
  CHECK(starts(start + std::chrono::seconds(21)));
  CHECK_FALSE(starts(start + std::chrono::seconds(22)));
  for (int i = 0; i < 3; ++i) CHECK(starts(start + std::chrono::hours(1)));
  CHECK_FALSE(starts(start + std::chrono::hours(1)));
}

TEST_CASE("who was refused for one reason has paid for none") {
  admission all({.starts_per_address = 10, .starts_per_key = 1});
  CHECK(all.enter("a", "k", start).first == verdict::welcome);
  for (int i = 0; i < 20; ++i) CHECK(all.enter("a", "k", start).first == verdict::too_many_starts);
  for (int i = 0; i < 9; ++i) CHECK(all.enter("a", std::to_string(i), start).first == verdict::welcome);
  CHECK(all.enter("a", "new", start).first == verdict::too_many_starts);
}

TEST_CASE("addresses that came by once are forgotten") {
  admission all({.sessions_per_address = 5, .starts_per_address = 60});
  const auto stays = all.enter("stays", "", start);
  for (int i = 0; i < 100'000; ++i) all.enter(std::to_string(i), "", start + std::chrono::seconds(i));
  CHECK(all.remembered() < 3000);
  for (int i = 0; i < 4; ++i) CHECK(all.enter("stays", "", start + std::chrono::hours(100)).first == verdict::welcome);
}

TEST_CASE("who goes on with a session has its place already, but starts like others") {
  admission all({.sessions_per_address = 1, .starts_per_address = 3});
  const auto held = all.enter("a", "", start);
  CHECK(all.enter("a", "", start).first == verdict::too_many_sessions);
  for (int i = 0; i < 2; ++i) CHECK(all.enter("a", "", start, true).first == verdict::welcome);
  CHECK(all.enter("a", "", start, true).first == verdict::too_many_starts);
}

TEST_CASE("a place may be held for longer than there is anybody to ask for one") {
  std::optional<admission> all(std::in_place, admission_limits{.sessions_per_address = 1});
  const auto held = all->enter("a", "", start);
  all.reset();
}
