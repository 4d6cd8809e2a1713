#include "net/websocket/heartbeat.hpp"

#include <catch2/catch.hpp>

using parley::net::heartbeat;
using verdict = heartbeat::verdict;

TEST_CASE("every interval has a ping while pongs come") {
  heartbeat beat;
  for (int i = 0; i < 3; ++i) {
    CHECK(beat.tick(false) == verdict::ping);
    beat.ponged();
  }
}

TEST_CASE("no pong within an interval ends the connection") {
  heartbeat beat;
  CHECK(beat.tick(false) == verdict::ping);
  CHECK(beat.tick(false) == verdict::dead);
}

TEST_CASE("who sends a large message need not answer inside it") {
  heartbeat beat;
  CHECK(beat.tick(true) == verdict::ping);
  for (int i = 0; i < 5; ++i) CHECK(beat.tick(true) == verdict::wait);
  CHECK(beat.tick(false) == verdict::dead);
}

TEST_CASE("while nothing is read, no pong is missed") {
  heartbeat beat;
  CHECK(beat.tick(false) == verdict::ping);
  for (int i = 0; i < 3; ++i) {
    beat.not_reading();
    CHECK(beat.tick(false) == verdict::ping);
  }
  beat.ponged();
  CHECK(beat.tick(false) == verdict::ping);
}
