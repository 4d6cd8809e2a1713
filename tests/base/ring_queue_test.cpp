#include "base/ring_queue.hpp"

#include <catch2/catch.hpp>

#include <deque>
#include <memory>
#include <random>

using parley::base::ring_queue;

TEST_CASE("a ring queue gives back in order what was put in") {
  ring_queue<int> queue;
  std::deque<int> expected;
  std::minstd_rand chance(3);
  for (int i = 0; i < 20'000; ++i) {
    // Long stretches of growth and of decline, so that it both wraps around and changes its size.
    const auto grows = (i / 1500) % 2 == 0 ? 7U : 3U;
    if (chance() % 10 < grows) {
      queue.push_back(i);
      expected.push_back(i);
    } else if (!expected.empty()) {
      REQUIRE(queue.front() == expected.front());
      queue.pop_front();
      expected.pop_front();
    }
    REQUIRE(queue.size() == expected.size());
    REQUIRE(queue.empty() == expected.empty());
    if (expected.empty()) continue;
    REQUIRE(queue.front() == expected.front());
    REQUIRE(queue[expected.size() - 1] == expected.back());
    REQUIRE(queue[expected.size() / 2] == expected[expected.size() / 2]);
  }
}

TEST_CASE("a ring queue keeps no item that has left it") {
  const auto item = std::make_shared<int>(1);
  ring_queue<std::shared_ptr<int>> queue;
  for (int i = 0; i < 5; ++i) queue.push_back(item);
  CHECK(item.use_count() == 6);
  queue.pop_front();
  CHECK(item.use_count() == 5);
  auto other = std::move(queue);
  other.push_back(item);
  CHECK(item.use_count() == 6);
  other.clear();
  CHECK(item.use_count() == 1);
  CHECK(other.empty());
  other.push_back(item);
  CHECK(other.front() == item);
}
