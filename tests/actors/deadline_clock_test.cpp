#include "actors/deadline_clock.hpp"

#include "actors/deadline_timer.hpp"
#include "tests/actors/bare_actors.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

using namespace parley::actors;
using namespace parley::actors::test;
using namespace std::chrono_literals;

namespace {

using clock = std::chrono::steady_clock;

/// Calls `due` for each `timer_due`, and ends when it returns false.
caf::actor waker(caf::actor_system& system, std::function<bool()> due) {
  return spawn(system, [due = std::move(due)](caf::event_based_actor* self) -> caf::behavior {
    return {[self, due](const timer_due&) {
      if (!due()) self->quit();
    }};
  });
}

std::shared_ptr<wake_target> target(const caf::actor& actor) {
  return std::make_shared<wake_target>(caf::actor_cast<caf::weak_actor_ptr>(actor));
}

} // namespace

TEST_CASE("actors are woken when it is time, whoever asked first") {
  threads on;
  deadline_clock timer;
  const auto start = clock::now();
  std::promise<clock::time_point> early, late;
  const auto first = waker(on.system, [&] { return late.set_value(clock::now()), false; });
  const auto second = waker(on.system, [&] { return early.set_value(clock::now()), false; });
  timer.wake(target(first), start + 60ms);
  timer.wake(target(second), start + 20ms);
  auto early_came = early.get_future(), late_came = late.get_future();
  REQUIRE(early_came.wait_for(soon) == std::future_status::ready);
  REQUIRE(late_came.wait_for(soon) == std::future_status::ready);
  CHECK(early_came.get() - start >= 20ms);
  CHECK(late_came.get() - start >= 60ms);
}

TEST_CASE("every time that was asked for comes, also those that are over") {
  threads on;
  deadline_clock timer;
  constexpr int times = 500;
  int left = times;
  std::promise<void> all;
  const auto actor = waker(on.system, [&] {
    if (--left > 0) return true;
    all.set_value();
    return false;
  });
  for (int i = 0; i < times; ++i)
    timer.wake(target(actor), clock::now() + std::chrono::microseconds(i % 7 * 1000 - 3000));
  CHECK(all.get_future().wait_for(soon) == std::future_status::ready);
}

TEST_CASE("an actor that has ended is not woken, and not kept") {
  threads on;
  deadline_clock timer;
  std::shared_ptr<wake_target> gone;
  {
    const auto actor = waker(on.system, [] { return true; });
    gone = target(actor);
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }
  on.system.await_all_actors_done();
  timer.wake(gone, clock::now());
  std::promise<void> heard;
  const auto other = waker(on.system, [&] { return heard.set_value(), false; });
  timer.wake(target(other), clock::now() + 1ms);
  CHECK(heard.get_future().wait_for(soon) == std::future_status::ready);
}

TEST_CASE("pending times of an actor that has ended hold nothing of it, and are forgotten") {
  threads on;
  deadline_clock timer;
  struct state {
    deadline_timer timer;
  };
  caf::weak_actor_ptr first;
  constexpr std::size_t actors = 3000;
  for (std::size_t i = 0; i < actors; ++i) {
    const caf::actor actor = on.system.spawn(
        [](caf::stateful_actor<state>* self, deadline_clock* clock_of_all) -> caf::behavior {
          self->state.timer.arm(self, clock::now() + 1h, *clock_of_all);
          return {[](const timer_due&) {}};
        },
        &timer);
    if (i == 0) first = caf::actor_cast<caf::weak_actor_ptr>(actor);
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }
  on.system.await_all_actors_done();
  // Nobody but this test holds a pointer to it, so CAF frees its memory.
  const auto until = clock::now() + soon;
  while (first.get()->weak_refs != 1 && clock::now() < until) std::this_thread::yield();
  CHECK(first.get()->weak_refs == 1);
  const auto live = waker(on.system, [] { return true; });
  constexpr std::size_t times = 2000;
  for (std::size_t i = 0; i < times; ++i) timer.wake(target(live), clock::now() + 1h);
  CHECK(timer.pending() >= times);
  CHECK(timer.pending() < times + actors);
  caf::anon_send_exit(live, caf::exit_reason::user_shutdown);
}

TEST_CASE("after it has stopped, nothing comes") {
  threads on;
  int heard = 0;
  const auto actor = waker(on.system, [&] { return ++heard, true; });
  {
    deadline_clock timer;
    timer.wake(target(actor), clock::now() + 1h);
    timer.stop();
    timer.wake(target(actor), clock::now());
  }
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  on.system.await_all_actors_done();
  CHECK(heard == 0);
}
