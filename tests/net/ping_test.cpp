#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>

using namespace parley::net;

namespace {

connection_limits quick_pings() {
  connection_limits limits;
  limits.ping = std::chrono::milliseconds(300); // a busy machine answers late
  return limits;
}

bool goes(server_fixture& fixture) {
  return fixture.gateway.eventually([](auto& sessions) { return !sessions.empty() && sessions.at(0)->gone; });
}

} // namespace

TEST_CASE("who answers pings stays") {
  server_fixture fixture(quick_pings());
  wire_client client = fixture.open();
  for (int i = 0; i < 5; ++i) {
    const auto got = client.read_frame();
    REQUIRE(got);
    REQUIRE(got->op == wire_client::ping);
    client.send_frame(wire_client::pong, got->payload);
  }
  client.send_frame(wire_client::text, "still here");
  CHECK(client.read_data().payload == "still here");
}

TEST_CASE("who does not is cut") {
  server_fixture fixture(quick_pings());
  wire_client client = fixture.open();
  CHECK(client.read_frame().value().op == wire_client::ping);
  CHECK_FALSE(client.read_frame());
  CHECK(goes(fixture));
  CHECK(fixture.empties());
}

TEST_CASE("half a frame, then silence") {
  server_fixture fixture(quick_pings());
  wire_client client = fixture.open();
  const std::string whole = wire_client::encode(wire_client::text, std::string(70'000, 'x'));
  client.send(whole.substr(0, GENERATE(1, 5, 13, 14, 15, 1000, 69'999)));
  CHECK(client.ended());
  CHECK(goes(fixture));
  CHECK(fixture.gateway.at(0).frames.empty());
  CHECK(fixture.empties());
}

TEST_CASE("half a message in whole frames, then only pongs") {
  server_fixture fixture(quick_pings());
  wire_client client = fixture.open();
  client.send_frame(wire_client::text, "begun", false);
  int pings = 0;
  try {
    while (const auto got = client.read_frame()) {
      client.send_frame(wire_client::pong, got->payload);
      ++pings;
    }
  } catch (const std::system_error&) { // a pong that came too late
  }
  CHECK(pings <= 3);
  CHECK(goes(fixture));
}

TEST_CASE("who sends much of a message at once and the rest byte by byte is not waited for") {
  server_fixture fixture(quick_pings());
  wire_client client = fixture.open();
  const std::string whole = wire_client::encode(wire_client::text, std::string(1'000'000, 'x'));
  client.send(whole.substr(0, 900'000));
  CHECK_FALSE(client.trickle(std::string(500, 'x')));
  CHECK(goes(fixture));
  CHECK(fixture.empties());
}

TEST_CASE("a message may take longer than a ping may wait, as long as it moves on") {
  server_fixture fixture(quick_pings());
  wire_client client = fixture.open();
  const std::string whole = wire_client::encode(wire_client::text, std::string(500'000, 'x'));
  const auto start = std::chrono::steady_clock::now();
  std::size_t sent = 0;
  while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(1000)) {
    client.send(std::string_view(whole).substr(sent, 100));
    sent = std::min(sent + 100, whole.size() - 100);
    std::this_thread::sleep_for(std::chrono::milliseconds(1)); // real time: the pace of the message is what is tested
  }
  client.send(std::string_view(whole).substr(sent));
  CHECK(client.read_data().payload.size() == 500'000);
}
