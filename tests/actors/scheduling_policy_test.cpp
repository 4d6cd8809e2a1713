#include "tests/actors/bare_actors.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <future>

using namespace parley::actors::test;

namespace {

/// Reports when it receives its first message.
caf::actor listener(caf::actor_system& system, std::promise<void>& heard) {
  return spawn(system, [&heard](caf::event_based_actor* self) -> caf::behavior {
    return {[&heard, self](go) {
      heard.set_value();
      self->quit();
    }};
  });
}

} // namespace

TEST_CASE("work that an actor gives away is done") {
  threads on;
  std::promise<void> heard;
  const auto next = listener(on.system, heard);
  const auto first = spawn(on.system, [&](caf::event_based_actor* self) -> caf::behavior {
    return {[=](go) {
      self->send(next, go{});
      self->quit();
    }};
  });
  caf::anon_send(first, go{});
  CHECK(heard.get_future().wait_for(soon) == std::future_status::ready);
}

TEST_CASE("who gives two others work keeps one of them waiting at most") {
  threads on;
  std::promise<void> one, two;
  const auto first = listener(on.system, one);
  const auto second = listener(on.system, two);
  std::promise<bool> in_time;
  const auto busy = spawn(on.system, [&](caf::event_based_actor* self) -> caf::behavior {
    return {[&, self](go) {
      self->send(first, go{});
      self->send(second, go{});
      in_time.set_value(one.get_future().wait_for(soon) == std::future_status::ready);
      self->quit();
    }};
  });
  caf::anon_send(busy, go{});
  CHECK(in_time.get_future().get());
  CHECK(two.get_future().wait_for(soon) == std::future_status::ready);
}

TEST_CASE("an actor that never runs out of messages holds nobody up") {
  threads on;
  std::atomic<bool> enough = false;
  std::promise<void> heard;
  const auto next = listener(on.system, heard);
  const auto restless = spawn(on.system, [&](caf::event_based_actor* self) -> caf::behavior {
    return {[&, self](go) {
              self->send(next, go{});
              self->send(self, caf::ok_atom_v);
            },
            [&, self](caf::ok_atom) { enough ? self->quit() : self->send(self, caf::ok_atom_v); }};
  });
  caf::anon_send(restless, go{});
  CHECK(heard.get_future().wait_for(soon) == std::future_status::ready);
  enough = true;
}
