#include "client/alarm_clock.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

using namespace parley::client;
using namespace std::chrono_literals;

TEST_CASE("an alarm whose time has come is not heard if it was set anew before its turn") {
  boost::asio::io_context io;
  alarm_clock second(io.get_executor());
  alarm_clock first(io.get_executor());
  int early = 0, late = 0;
  const auto past = alarm_clock::clock::now() - 1s; // both have expired when the first call is made
  SECTION("to another time") {
    first.at(past - 1s, [&] { second.at(alarm_clock::clock::now() + 1ms, [&] { ++late; }); });
    second.at(past, [&] { ++early; });
    io.run();
    CHECK(early == 0);
    CHECK(late == 1);
  }
  SECTION("to none") {
    first.at(past - 1s, [&] { second.cancel(); });
    second.at(past, [&] { ++early; });
    io.run();
    CHECK(early == 0);
  }
}
