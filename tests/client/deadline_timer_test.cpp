#include "client/deadline_timer.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

using namespace parley::client;
using namespace std::chrono_literals;

TEST_CASE("a timer whose time has come is not heard if it was set anew before its turn") {
  boost::asio::io_context io;
  deadline_timer second(io.get_executor());
  deadline_timer first(io.get_executor());
  int early = 0, late = 0;
  const auto past = deadline_timer::clock::now() - 1s; // both have expired when the first call is made
  SECTION("to another time") {
    first.at(past - 1s, [&] { second.at(deadline_timer::clock::now() + 1ms, [&] { ++late; }); });
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
