#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>

#include <thread>

using namespace parley::net;

// What greedy and slow clients do to a server, each beside a client that only wants an echo.

namespace {

bool still_served(wire_client& bystander) {
  bystander.send_frame(wire_client::text, "still there?");
  return bystander.read_data().payload == "still there?";
}

/// Sends the same frame until all are sent or the server accepts no more.
std::size_t send_many(wire_client& client, const std::string& frame, std::size_t count) {
  constexpr std::size_t at_once = 10'000;
  std::string bytes;
  for (std::size_t i = 0; i < at_once; ++i) bytes += frame;
  std::size_t sent = 0;
  for (; sent < count && client.try_send(bytes, std::chrono::seconds(30)); sent += at_once) {
  }
  return sent;
}

} // namespace

TEST_CASE("a million tiny frames are taken one by one, nobody else waits for them") {
  server_fixture fixture;
  std::size_t came = 0;
  fixture.gateway.on_text = [&](echo_gateway::session& session, std::string&& frame) {
    session.link->taken(frame.size());
    if (frame.size() > 1) return session.link->send(std::make_shared<const std::string>(std::move(frame)));
    session.frames.clear();
    ++came;
  };
  wire_client bystander = fixture.open();
  wire_client client = fixture.open();
  const std::string tiny = wire_client::encode(wire_client::text, "x");
  for (int part = 0; part < 10; ++part) {
    CHECK(send_many(client, tiny, 100'000) == 100'000);
    CHECK(still_served(bystander));
    client.send_frame(wire_client::text, "so far");
    CHECK(client.read_data().payload == "so far"); // frames are read in order, so all before it have arrived
  }
  CHECK(fixture.gateway.eventually([&](auto&) { return came == 1'000'000; }));
}

TEST_CASE("a million empty fragments are one message, and hold nothing") {
  server_fixture fixture;
  wire_client bystander = fixture.open();
  wire_client client = fixture.open();
  client.send_frame(wire_client::text, "begin", false);
  CHECK(send_many(client, wire_client::encode(wire_client::continuation, "", false), 1'000'000) == 1'000'000);
  CHECK(still_served(bystander));
  client.send_frame(wire_client::continuation, " end", true);
  CHECK(client.read_data().payload == "begin end");
}

TEST_CASE("a frame of 200 MB is refused by its header, in every mode") {
  server_fixture fixture;
  wire_client bystander = fixture.open();
  for (const char* mode : {"audio", "video", "chat"}) {
    wire_client client = fixture.open(std::string("/v1/realtime?mode=") + mode);
    const std::string header("\x81\xFF\0\0\0\0\x0B\xEB\xC2\0\x01\x02\x03\x04", 14);
    client.send(header);
    CHECK(client.read_close() == 1009);
    CHECK(still_served(bystander));
  }
}

TEST_CASE("a handshake that drips is cut at its deadline") {
  connection_limits limits;
  limits.handshake = std::chrono::seconds(1);
  server_fixture fixture(limits);
  wire_client bystander = fixture.open();
  wire_client slow = fixture.connect();
  server& door = fixture.start();
  const auto begin = std::chrono::steady_clock::now();
  const auto late = [&] { return std::chrono::steady_clock::now() - begin > std::chrono::seconds(30); };
  slow.send("G");
  while (door.connections() < 2 && !late()) std::this_thread::yield();
  REQUIRE(door.connections() == 2);
  const std::string rest = "ET /v1/realtime HTTP/1.1\r\nX: ";
  // A slow drip needs real time: this is the one test that must let some pass.
  for (std::size_t i = 0; door.connections() == 2 && !late(); ++i) {
    try {
      slow.send(i < rest.size() ? rest.substr(i, 1) : "x");
    } catch (const std::runtime_error&) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK_FALSE(late());
  CHECK(slow.ended());
  CHECK(fixture.gateway.open() == 1);
  CHECK(still_served(bystander));
}
