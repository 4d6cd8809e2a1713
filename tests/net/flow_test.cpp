#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>

using namespace parley::net;

namespace {

auto frame(std::size_t bytes) {
  return std::make_shared<const std::string>(bytes, 'x');
}

connection_limits small_outbox() {
  connection_limits limits;
  limits.outbox_bytes = 1u << 20;
  limits.close = std::chrono::milliseconds(200);
  return limits;
}

/// Sends far more than the kernel and the outbox together can hold.
void overfill(parley::actors::client_link& link) {
  for (int i = 0; i < 1000; ++i) link.send(frame(100'000));
}

} // namespace

TEST_CASE("a dead reader is cut, and nobody else notices") {
  server_fixture fixture(small_outbox());
  wire_client dead = fixture.open();
  dead.shrink_receive_buffer();
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 1; }));
  wire_client other = fixture.open();
  const auto link = fixture.gateway.at(0).link;
  overfill(*link);
  other.send_frame(wire_client::text, "undisturbed");
  CHECK(other.read_data().payload == "undisturbed");
  CHECK(fixture.gateway.eventually([](auto& sessions) { return !sessions.empty() && sessions.at(0)->gone; }));
  other.send_frame(wire_client::text, "still");
  CHECK(other.read_data().payload == "still");
  CHECK_FALSE(fixture.gateway.at(1).gone);
}

TEST_CASE("a reader who is only slow hears 1008") {
  connection_limits limits = small_outbox();
  limits.close = std::chrono::seconds(10);
  server_fixture fixture(limits);
  wire_client slow = fixture.open();
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 1; }));
  overfill(*fixture.gateway.at(0).link);
  CHECK(slow.read_close() == 1008);
  CHECK(slow.ended());
  CHECK(fixture.gateway.eventually([](auto& sessions) { return !sessions.empty() && sessions.at(0)->gone; }));
}

TEST_CASE("reading stops while the session has not taken what came") {
  connection_limits limits;
  std::string message(1000, 'x');
  std::size_t held = 0;
  SECTION("by frames") {
    limits.credit_frames = 4;
    message = std::string(500'000, 'x');
    held = 4;
  }
  SECTION("by bytes") {
    limits.credit_bytes = 2'500'000;
    limits.credit_frames = 1000;
    message = std::string(1'000'000, 'x');
    held = 3;
  }
  server_fixture fixture(limits);
  fixture.gateway.on_text = [](echo_gateway::session&, std::string&&) {};
  wire_client client = fixture.open();
  CHECK(fixture.gateway.eventually([&](auto& sessions) { return sessions.size() == 1; }));
  // Sends until the kernel accepts no more: the server has stopped reading.
  const std::string bytes = wire_client::encode(wire_client::text, message);
  std::size_t sent = 0;
  while (sent < 100 && client.try_send(bytes, std::chrono::milliseconds(500))) ++sent;
  CHECK(sent < 100);
  CHECK(fixture.gateway.at(0).frames.size() == held);

  const auto link = fixture.gateway.at(0).link;
  link->taken(message.size());
  CHECK(fixture.gateway.eventually(
      [&](auto& sessions) { return !sessions.empty() && sessions.at(0)->frames.size() == held + 1; }));
  for (std::size_t more = held + 2; more <= sent; ++more) {
    link->taken(message.size());
    CHECK(fixture.gateway.eventually(
        [&](auto& sessions) { return !sessions.empty() && sessions.at(0)->frames.size() == more; }));
  }
}

TEST_CASE("a session that takes nothing does not hold a client that went away, nor is a live one cut") {
  connection_limits limits;
  limits.credit_frames = 1;
  limits.ping = std::chrono::milliseconds(50);
  server_fixture fixture(limits);
  fixture.gateway.on_text = [](echo_gateway::session&, std::string&&) {};
  wire_client client = fixture.open();
  client.send_frame(wire_client::text, "held");
  CHECK(fixture.gateway.eventually(
      [](auto& sessions) { return sessions.size() == 1 && sessions[0]->frames.size() == 1; }));
  SECTION("it goes") {
    client.reset();
    CHECK(fixture.gateway.eventually([](auto& sessions) { return !sessions.empty() && sessions.at(0)->gone; }));
  }
  SECTION("it stays, its pong is read late") {
    const auto ping = client.read_frame();
    REQUIRE(ping);
    client.send_frame(wire_client::pong, ping->payload);
    client.send_frame(wire_client::text, "next");
    for (int i = 0; i < 6; ++i)
      CHECK(client.read_frame().value().op == wire_client::ping); // for six intervals the server reads nothing
    CHECK_FALSE(fixture.gateway.at(0).gone);
    fixture.gateway.at(0).link->taken(4);
    CHECK(fixture.gateway.eventually(
        [](auto& sessions) { return !sessions.empty() && sessions.at(0)->frames.size() == 2; }));
  }
}

TEST_CASE("a link that outlives its connection and its server does nothing") {
  std::shared_ptr<parley::actors::client_link> link;
  {
    server_fixture fixture;
    wire_client client = fixture.open();
    CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 1; }));
    link = fixture.gateway.at(0).link;
    fixture.start().stop(std::chrono::milliseconds(0));
    link->send(frame(10));
  }
  link->send(frame(10));
  link->taken(10);
  link->became_chat();
  link->close(1000, "");
}
