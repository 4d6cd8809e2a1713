#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>

#include <stdexcept>

using namespace parley::net;

TEST_CASE("a handler that throws costs its own connection, and nobody else's") {
  server_fixture fixture({}, 1);
  fixture.gateway.on_text = [](echo_gateway::session& session, std::string&& frame) {
    if (frame == "throw") throw std::runtime_error("planted");
    session.link->taken(frame.size());
    session.link->send(std::make_shared<const std::string>(std::move(frame)));
  };
  wire_client bystander = fixture.open();
  {
    wire_client client = fixture.open();
    client.send_frame(wire_client::text, "throw");
    CHECK(client.ended());
    CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 2 && sessions.at(1)->gone; }));
  }
  bystander.send_frame(wire_client::text, "still here");
  CHECK(bystander.read_data().payload == "still here");
  CHECK_FALSE(fixture.gateway.at(0).gone);
  CHECK(fixture.start().connections() == 1);
}
