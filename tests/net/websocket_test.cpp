#include "server_fixture.hpp"

#include <catch2/catch.hpp>

using namespace parley::net;

TEST_CASE("a text frame reaches its session and the answer comes back") {
  server_fixture fixture;
  wire_client client = fixture.open("/v1/realtime?mode=audio");
  client.send_frame(wire_client::text, "hello");
  const auto answer = client.read_data();
  REQUIRE(answer);
  CHECK(answer->op == wire_client::text);
  CHECK(answer->payload == "hello");
  CHECK(fixture.house.at(0).spare >= 64);
  CHECK(fixture.house.at(0).info.mode == "audio");
}
