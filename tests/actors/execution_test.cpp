#include "actors/execution.hpp"

#include "tests/actors/bare_actors.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

using namespace parley::actors;
using namespace parley::actors::test;

TEST_CASE("a message and what follows from it are worked through before its sender goes on") {
  threads on;
  std::thread::id first_ran, second_ran;
  bool at_once = false;
  const auto second = spawn_at_rest(on.system, [&](caf::event_based_actor* self) -> caf::behavior {
    return {[&, self](go) {
      second_ran = std::this_thread::get_id();
      self->quit();
    }};
  });
  const auto first = spawn_at_rest(on.system, [&](caf::event_based_actor* self) -> caf::behavior {
    return {[&, self](go) {
      const on_own_thread here(self->context());
      first_ran = std::this_thread::get_id();
      pass_here(second, go{});
      at_once = second_ran != std::thread::id{};
      self->quit();
    }};
  });
  pass_here(first, go{});
  CHECK(first_ran == std::this_thread::get_id());
  CHECK(second_ran == std::this_thread::get_id());
  CHECK_FALSE(at_once); // not while the first is at work
}

TEST_CASE("a scheduler's thread works through what its actor passes on") {
  threads on;
  std::promise<std::thread::id> first_ran, second_ran;
  const auto second = spawn_at_rest(on.system, [&](caf::event_based_actor* self) -> caf::behavior {
    return {[&, self](go) {
      second_ran.set_value(std::this_thread::get_id());
      self->quit();
    }};
  });
  const auto first = spawn_at_rest(on.system, [&](caf::event_based_actor* self) -> caf::behavior {
    return {[&, self](go) {
      {
        const on_own_thread here(self->context());
        pass(second, go{});
      }
      first_ran.set_value(std::this_thread::get_id());
      self->quit();
    }};
  });
  pass(first, go{}); // no actor runs here
  CHECK(first_ran.get_future().get() != std::this_thread::get_id());
  CHECK(second_ran.get_future().get() != std::this_thread::get_id());
}

TEST_CASE("nobody waits for an actor that is at work elsewhere") {
  threads on;
  std::promise<void> busy, go_on, seen;
  const auto actor = spawn_at_rest(on.system, [&](caf::event_based_actor* self) -> caf::behavior {
    return {[&](caf::ok_atom) {
              busy.set_value();
              go_on.get_future().wait();
            },
            [&, self](go) {
              seen.set_value();
              self->quit();
            }};
  });
  caf::anon_send(actor, caf::ok_atom_v);
  busy.get_future().wait();
  pass_here(actor, go{});
  auto done = seen.get_future();
  CHECK(done.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  go_on.set_value();
  CHECK(done.wait_for(soon) == std::future_status::ready);
}

TEST_CASE("actors that never run out of messages keep nobody up") {
  threads on;
  std::atomic<bool> enough = false;
  const auto restless = spawn_at_rest(on.system, [&](caf::event_based_actor* self) -> caf::behavior {
    return {[&, self](go) { enough ? self->quit() : self->send(self, go{}); }};
  });
  const auto to_and_fro = [&] {
    return spawn_at_rest(on.system, [&](caf::event_based_actor* self) -> caf::behavior {
      return {[&, self](const caf::actor& other) {
        self->send(other, caf::actor(self));
        if (enough) self->quit();
      }};
    });
  };
  const auto ping = to_and_fro(), pong = to_and_fro();
  pass_here(restless, go{});
  pass_here(ping, caf::actor(pong));
  enough = true; // both are with the scheduler now
  on.system.await_all_actors_done();
}
