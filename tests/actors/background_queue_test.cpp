#include "tests/actors/queue_fixture.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <set>

// Background tickets: they never cost anybody a slot.
namespace parley::actors {

using namespace test;

TEST_CASE("a background ticket gets a slot that is idle, and is recalled when somebody wants it") {
  queue_fixture h;
  h.offer(1, 2);
  CHECK(h.enqueue(1) == "1 gets 1");
  CHECK(h.enqueue_aside(2) == "2 gets 1");
  CHECK(h.enqueue(3) == "3 queued 1, 2 recalled");
  CHECK(h.wait_s(3) == 0);
  CHECK(h.enqueue(4) == "4 queued 2");
  CHECK(h.free(2) == "3 gets 1");
}

TEST_CASE("a background ticket waits, without a word, until nobody else does") {
  queue_fixture h;
  h.offer(1, 1);
  h.enqueue(1);
  CHECK(h.enqueue_aside(2) == "");
  CHECK(h.enqueue(3) == "3 queued 1");
  CHECK(h.line.waiting() == 1);
  CHECK(h.line.waiting_in_background() == 1);
  CHECK(h.free(1) == "3 gets 1");
  CHECK(h.free(3) == "2 gets 1");
  CHECK(h.free(2) == "");
}

TEST_CASE("background tickets are served in order, and may leave") {
  queue_fixture h;
  h.offer(1, 1);
  h.enqueue(1);
  h.enqueue_aside(2);
  h.enqueue_aside(3);
  h.enqueue_aside(4);
  h.line.cancel(3, h.now);
  CHECK(h.free(1) == "2 gets 1");
  CHECK(h.free(2) == "4 gets 1");
}

TEST_CASE("who waits in the background waits on when the last in front of it leaves") {
  queue_fixture h;
  h.offer(1, 0);
  h.enqueue(1);
  h.enqueue_aside(2);
  h.line.cancel(1, h.now);
  CHECK(h.offer(1, 1) == "2 gets 1");
}

TEST_CASE("slots of background tickets count as free for those who ask how long they will wait") {
  queue_fixture h;
  h.offer(1, 1);
  h.enqueue_aside(1);
  CHECK(h.line.expected_wait_s(h.now) == 0);
  h.line.accept(1, h.now);
  h.now += std::chrono::seconds(300);
  h.enqueue(2);
  CHECK(h.wait_s(2) == 0);
  h.free(1);
  h.line.accept(2, h.now);
  CHECK(h.line.expected_wait_s(h.now) == 120); // of a session that has just begun
}

TEST_CASE("background tickets are refused without workers, in a drain, and where nobody may wait") {
  queue_fixture h;
  CHECK(h.enqueue_aside(1) == "1 service_unavailable");
  h.offer(1, 1);
  h.enqueue_aside(2);
  h.enqueue_aside(3);
  CHECK(words(h.line.worker_down(1, h.now, {{2, 4, "t"}})) == "3 service_unavailable, 4 service_unavailable");
  h.offer(2, 1);
  h.enqueue(5);
  h.enqueue_aside(6);
  CHECK(words(h.line.drain(h.now)) == "6 service_unavailable");
  CHECK(h.enqueue_aside(7) == "7 service_unavailable");

  queue_fixture none({.capacity = 0});
  none.offer(1, 1);
  CHECK(none.enqueue_aside(1) == "1 gets 1");
  CHECK(none.enqueue_aside(2) == "2 worker_busy");
}

TEST_CASE("a background session that loses its worker goes behind everybody") {
  queue_fixture h;
  h.offer(1, 1);
  h.offer(2, 1);
  h.enqueue(1);
  h.enqueue_aside(2);
  const auto lost = *h.line.worker_of(2);
  h.enqueue(3);
  CHECK(words(h.line.worker_down(lost, h.now, {{2, 4, "t"}})) == "");
  CHECK(h.free(1) == "3 gets " + std::to_string(3 - lost));
  CHECK(h.free(3) == "4 gets " + std::to_string(3 - lost));
}

TEST_CASE("whatever happens, nobody waits while a background session keeps its slot") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    queue_fixture h;
    std::set<ticket_key> background, recalled, holding;
    const auto hear = [&](const queue_events& said) {
      for (const auto& each : said) {
        if (const auto* granted = std::get_if<ticket_granted>(&each)) {
          if (background.contains(granted->ticket)) REQUIRE(h.line.waiting() == 0);
          holding.insert(granted->ticket);
        } else if (const auto* gone = std::get_if<ticket_recalled>(&each)) {
          REQUIRE(background.contains(gone->ticket));
          REQUIRE(holding.contains(gone->ticket));
          REQUIRE(recalled.insert(gone->ticket).second);
        }
      }
    };
    hear(h.line.offer(1, 3, h.now));
    hear(h.line.offer(2, 2, h.now));
    ticket_key next = 1;
    for (int i = 0; i < 300; ++i) {
      switch (random() % 5) {
      case 0: hear(h.line.enqueue(next++, "t", mode::audio, false, h.now)); break;
      case 1:
        background.insert(next);
        hear(h.line.enqueue(next++, "", mode::chat, false, h.now, {.background = true}));
        break;
      case 2:
      case 3:
        if (!holding.empty()) {
          const auto over = *std::next(holding.begin(), static_cast<long>(random() % holding.size()));
          holding.erase(over);
          hear(h.line.free(over, h.now));
        }
        break;
      default: h.now += std::chrono::milliseconds(random() % 500); hear(h.line.tick(h.now));
      }
      std::size_t kept = 0;
      for (const auto each : holding) kept += background.contains(each) && !recalled.contains(each) ? 1 : 0;
      std::size_t leaving = 0;
      for (const auto each : holding) leaving += recalled.contains(each) ? 1 : 0;
      REQUIRE((kept == 0 || h.line.waiting() <= leaving));
      REQUIRE(h.line.free_slots() == static_cast<int>(5 - holding.size()));
    }
  }
}

} // namespace parley::actors
