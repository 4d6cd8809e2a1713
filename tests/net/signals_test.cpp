#include "net/signals.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <future>
#include <unistd.h>

TEST_CASE("each signal is told") {
  const int number = GENERATE(SIGHUP, SIGINT, SIGTERM);
  std::promise<int> first, second;
  int calls = 0;
  const parley::net::process_signals signals([&](int got) { (calls++ == 0 ? first : second).set_value(got); });
  ::kill(::getpid(), number);
  CHECK(first.get_future().get() == number);
  ::kill(::getpid(), SIGTERM);
  CHECK(second.get_future().get() == SIGTERM);
}
