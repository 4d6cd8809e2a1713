#include "base/restart_pause.hpp"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using parley::base::restart_pause;

TEST_CASE("the pause before a restart grows with each short life, up to a limit") {
  restart_pause pause;
  for (const auto expected : {1s, 2s, 4s, 8s, 16s, 30s, 30s}) CHECK(pause.after(59s) == expected);
}

TEST_CASE("after a long life the pause is short again") {
  restart_pause pause;
  for (auto i = 0; i < 4; ++i) pause.after(0s);
  CHECK(pause.after(60s) == 1s);
  CHECK(pause.after(1s) == 2s);
}
