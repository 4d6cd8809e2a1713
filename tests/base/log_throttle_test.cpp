#include "base/log_throttle.hpp"

#include <catch2/catch.hpp>

using namespace parley::base;
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

TEST_CASE("a few lines pass in each interval, if that is wanted") {
  log_throttle throttle(std::chrono::minutes(1), 3);
  const auto begun = log_throttle::time_point{};
  const auto after = [&](int seconds) { return throttle.pass(begun + std::chrono::seconds(seconds)); };
  for (int i = 0; i < 3; ++i) CHECK(after(i) == 0);
  CHECK_FALSE(after(3));
  CHECK_FALSE(after(59));
  CHECK(after(60) == 2);
  CHECK(after(61) == 0);
  CHECK(after(62) == 0);
  CHECK_FALSE(after(63));
}
