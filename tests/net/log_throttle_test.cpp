#include "net/log_throttle.hpp"

#include <catch2/catch.hpp>

using namespace parley::net;
using namespace std::chrono_literals;

TEST_CASE("one line an interval, which tells how many were held back") {
  log_throttle throttle(60s);
  const log_throttle::time_point start{};
  CHECK(throttle.pass(start) == 0);
  for (int i = 1; i <= 5; ++i) CHECK_FALSE(throttle.pass(start + i * 1s));
  CHECK_FALSE(throttle.pass(start + 59s));
  CHECK(throttle.pass(start + 60s) == 6);
  CHECK_FALSE(throttle.pass(start + 61s));
  CHECK(throttle.pass(start + 600s) == 1);
  CHECK(throttle.pass(start + 1200s) == 0);
}
