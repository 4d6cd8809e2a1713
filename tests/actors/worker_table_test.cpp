#include "actors/queue/worker_table.hpp"

#include <catch2/catch.hpp>

#include <optional>
#include <string>
#include <vector>

namespace parley::actors {

namespace {

inference::engine_info with_slots(int slots) {
  inference::engine_info info;
  info.slots = slots;
  info.device = "none";
  return info;
}

struct watched_board {
  std::vector<worker_state> told;
  worker_table board{[this](const worker_view& view) { told.push_back(view.state); }};
};

} // namespace

TEST_CASE("a worker loads, comes up, is drained and taken again") {
  watched_board of;
  CHECK(of.board.ready().reason == "no worker is up");
  CHECK_FALSE(of.board.join(1, {}, "", "cpu"));
  CHECK(of.board.ready().reason == "the model is still being loaded");
  CHECK_FALSE(of.board.offered_by(1));
  CHECK_FALSE(of.board.engine());
  CHECK(of.board.offer(1, with_slots(3)) == 3);
  CHECK(of.board.ready().ready);
  CHECK(of.board.drain(1, true));
  CHECK(of.board.offer(1, with_slots(3)) == 0);
  CHECK(of.board.ready().reason == "every worker is being drained");
  CHECK(of.board.engine());
  CHECK(of.board.drain(1, false));
  CHECK(of.board.offer(1, with_slots(3)) == 3);
  using enum worker_state;
  CHECK(of.told == std::vector{loading, up, draining, up});
}

TEST_CASE("the model's name is that of the last offer, also when nobody is up") {
  watched_board of;
  of.board.join(1, {}, "", "cpu");
  CHECK(of.board.model().empty());
  auto info = with_slots(1);
  info.model = "MiniCPM-o-4_5";
  of.board.offer(1, info);
  CHECK(of.board.model() == "MiniCPM-o-4_5");
  of.board.lose(1, false, "on fire");
  CHECK(of.board.model() == "MiniCPM-o-4_5");
}

TEST_CASE("unknown workers and lost ones are left alone") {
  watched_board of;
  CHECK_FALSE(of.board.offer(1, with_slots(1)));
  CHECK_FALSE(of.board.drain(1, true));
  CHECK_FALSE(of.board.leave(1));
  CHECK_FALSE(of.board.report(1, {}));
  CHECK_FALSE(of.board.lose(1, false, "gone"));
  of.board.join(1, {}, "", "cpu");
  of.board.offer(1, with_slots(1));
  CHECK_FALSE(of.board.lose(1, false, "on fire"));
  CHECK(of.board.all().at(0).state == worker_state::down);
  CHECK(of.board.all().at(0).reason == "on fire");
  CHECK(of.board.all().at(0).device == "none");
  CHECK_FALSE(of.board.offer(1, with_slots(1)));
  CHECK_FALSE(of.board.engine());
  CHECK(of.board.ready().reason == "no worker is up");
}

TEST_CASE("whoever leaves is forgotten; a node's new worker takes the place of its lost one") {
  watched_board of;
  of.board.join(1, {}, "a", "cpu");
  of.board.join(2, {}, "b", "cpu");
  CHECK(of.board.leave(1));
  CHECK(of.board.drain(1, false)); // has no effect
  CHECK(of.board.offer(1, with_slots(1)) == 0);
  CHECK(of.board.lose(1, false, "whatever"));
  CHECK_FALSE(of.board.lose(2, false, "lost"));
  CHECK(of.board.all().size() == 1);
  CHECK_FALSE(of.board.join(3, {}, "a", "cpu"));
  CHECK(of.board.join(4, {}, "b", "cpu") == std::optional<worker_key>(2));
  CHECK(of.board.all().size() == 2);
}

TEST_CASE("drained workers are cleared when there is another one") {
  watched_board of;
  for (worker_key key : {1, 2}) of.board.join(key, {}, "", "cpu");
  for (worker_key key : {1, 2}) of.board.drain(key, true);
  CHECK(of.board.to_be_cleared().empty());
  of.board.drain(2, false);
  CHECK(of.board.to_be_cleared() == std::vector<worker_key>{1});
  of.board.lose(2, false, "lost");
  CHECK(of.board.to_be_cleared().empty());
}

TEST_CASE("what a worker tells of its load comes with what it told before") {
  watched_board of;
  of.board.join(1, {}, "", "cpu");
  worker_capacity load;
  load.busy_s = 2;
  CHECK(of.board.report(1, load)->before.busy_s == 0);
  load.busy_s = 5;
  const auto both = of.board.report(1, load);
  CHECK(both->before.busy_s == 2);
  CHECK(both->now.busy_s == 5);
}

TEST_CASE("a closed core says why") {
  watched_board of;
  of.board.join(1, {}, "", "cpu");
  of.board.offer(1, with_slots(1));
  of.board.close(closed_for::shutdown);
  CHECK(of.board.ready().reason == "the server is shutting down");
  of.board.close(closed_for::queue_ended);
  CHECK(of.board.ready().reason == "the queue manager has ended");
}

TEST_CASE("lost workers are listed, but not without an end") {
  watched_board of;
  constexpr auto many = worker_table::most_lost;
  for (worker_key key = 1; key <= many + 10; ++key) {
    const auto replaced = of.board.join(key, {}, "node " + std::to_string(key), "cpu");
    CHECK(replaced == (key <= many ? std::nullopt : std::optional(key - many)));
    of.board.lose(key, false, "gone");
  }
  CHECK(of.board.all().size() == many);
}

} // namespace parley::actors
