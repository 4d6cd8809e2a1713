#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>

using namespace parley::net;

namespace {

connection_limits small_messages() {
  connection_limits limits;
  limits.duplex_message_bytes = 1000;
  limits.chat_message_bytes = 5000;
  return limits;
}

bool echoes(wire_client& client, const std::string& text) {
  client.send_frame(wire_client::text, text);
  const auto got = client.read_data();
  return got.op == wire_client::text && got.payload == text;
}

} // namespace

TEST_CASE("text frames reach the session whole") {
  server_fixture fixture;
  wire_client client = fixture.open();
  for (const std::size_t size : {0u, 1u, 125u, 126u, 300u, 65'535u, 65'536u, 113'000u, 3'000'000u})
    CHECK(echoes(client, std::string(size, 'a')));
  CHECK(echoes(client, "\xF0\x9F\x98\x80 \xC3\xA4"));
}

TEST_CASE("a message in fragments, with a ping between them, is one message") {
  server_fixture fixture;
  wire_client client = fixture.open();
  client.send_frame(wire_client::text, "one \xF0\x9F", false);
  client.send_frame(wire_client::ping, "?");
  client.send_frame(wire_client::continuation, "\x98\x80", false);
  client.send_frame(wire_client::continuation, "", false);
  client.send_frame(wire_client::continuation, " two", true);
  const auto pong = client.read_data();
  CHECK(pong.op == wire_client::pong);
  CHECK(pong.payload == "?");
  CHECK(client.read_data().payload == "one \xF0\x9F\x98\x80 two");
}

TEST_CASE("the message bound is the mode's") {
  server_fixture fixture(small_messages());
  const auto bound = [&](std::string_view target, std::size_t bytes) {
    wire_client at = fixture.open(target);
    CHECK(echoes(at, std::string(bytes, 'x')));
    wire_client over = fixture.open(target);
    over.send_frame(wire_client::text, std::string(bytes + 1, 'x'));
    CHECK(over.read_close() == 1009);
    CHECK(over.ended());
  };
  bound("/v1/realtime?mode=audio", 1000);
  bound("/v1/realtime?mode=video", 1000);
  bound("/v1/realtime?mode=nonsense", 1000);
  bound("/v1/realtime", 1000);
  bound("/v1/realtime?mode=chat", 5000);
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.back()->gone; }));
}

TEST_CASE("a session that became a chat has the bound of chat") {
  server_fixture fixture(small_messages());
  fixture.gateway.on_text = [](echo_gateway::session& session, std::string&& frame) {
    session.link->taken(frame.size());
    session.link->became_chat();
    session.link->send(std::make_shared<const std::string>(frame));
  };
  wire_client client = fixture.open();
  CHECK(echoes(client, "become"));
  CHECK(echoes(client, std::string(5000, 'x')));
  client.send_frame(wire_client::text, std::string(5001, 'x'));
  CHECK(client.read_close() == 1009);
}

TEST_CASE("the bound holds over fragments, and for what a header only claims") {
  server_fixture fixture(small_messages());
  wire_client client = fixture.open();
  SECTION("fragments") {
    client.send_frame(wire_client::text, std::string(600, 'x'), false);
    client.send_frame(wire_client::continuation, std::string(600, 'x'), true);
  }
  SECTION("claimed, not sent") {
    client.send(wire_client::encode(wire_client::text, std::string(70'000, 'x')).substr(0, 20));
  }
  SECTION("2^62 bytes claimed") {
    client.send(std::string("\x81\xFF\x40\0\0\0\0\0\0\0\x01\x02\x03\x04", 14));
  }
  CHECK(client.read_close() == 1009);
  CHECK(fixture.gateway.eventually([](auto& sessions) { return !sessions.empty() && sessions.at(0)->gone; }));
}

TEST_CASE("a binary frame is told to the session, which closes with 1003") {
  server_fixture fixture;
  wire_client client = fixture.open();
  const std::string payload = GENERATE(std::string(), std::string("x"), std::string(100'000, 'x'));
  client.send_frame(wire_client::binary, payload);
  client.send_frame(wire_client::text, "after");
  CHECK(client.read_close() == 1003);
  CHECK(fixture.gateway.at(0).binaries == 1);
  CHECK(fixture.gateway.at(0).frames.empty());
}

TEST_CASE("bad UTF-8 closes with 1007") {
  server_fixture fixture;
  wire_client client = fixture.open();
  const std::string bad = GENERATE(std::string("\xFF"), std::string("abc\xC3"), std::string("\xED\xA0\x80"),
                                   std::string(100'000, 'x') + "\xC0\x80");
  client.send_frame(wire_client::text, bad);
  CHECK(client.read_close() == 1007);
  CHECK(fixture.gateway.eventually([](auto& sessions) { return !sessions.empty() && sessions.at(0)->gone; }));
  CHECK(fixture.gateway.at(0).frames.empty());
}

TEST_CASE("frames against RFC 6455 close with 1002") {
  server_fixture fixture;
  wire_client client = fixture.open();
  SECTION("not masked") {
    client.send(std::string("\x81\x01x", 3));
  }
  SECTION("unknown opcode") {
    client.send_frame(3, "x");
  }
  SECTION("reserved bit") {
    client.send(std::string("\xC1\x81\0\0\0\0x", 7));
  }
  SECTION("continuation of nothing") {
    client.send_frame(wire_client::continuation, "x");
  }
  CHECK(client.read_close() == 1002);
  CHECK(fixture.gateway.eventually([](auto& sessions) { return !sessions.empty() && sessions.at(0)->gone; }));
}

TEST_CASE("a client's close is answered and told") {
  server_fixture fixture;
  wire_client client = fixture.open();
  client.send_frame(wire_client::close, std::string("\x03\xE8", 2) + "bye");
  CHECK(client.read_close() == 1000);
  CHECK(client.ended());
  CHECK(fixture.gateway.eventually([](auto& sessions) { return !sessions.empty() && sessions.at(0)->gone; }));
  CHECK(fixture.empties());
}

TEST_CASE("a session's close comes behind all that it sent, then the transport ends") {
  server_fixture fixture;
  fixture.gateway.on_text = [](echo_gateway::session& session, std::string&& frame) {
    session.link->taken(frame.size());
    for (int i = 0; i < 50; ++i) session.link->send(std::make_shared<const std::string>(10'000, 'x'));
    session.link->send(std::make_shared<const std::string>("last"));
    session.link->close(1013, std::string(121, 'r') + "\xC3\xA4\xC3\xA4");
    session.link->send(std::make_shared<const std::string>("too late"));
    session.link->close(1000, "");
  };
  wire_client client = fixture.open();
  client.send_frame(wire_client::text, "go");
  for (int i = 0; i < 50; ++i) CHECK(client.read_data().payload.size() == 10'000);
  CHECK(client.read_data().payload == "last");
  const auto close = client.read_data();
  CHECK(close.close_code() == 1013);
  CHECK(close.payload.substr(2) == std::string(121, 'r') + "\xC3\xA4"); // 123 bytes, whole characters
  client.send_frame(wire_client::close, close.payload);
  CHECK(client.ended());
  CHECK(fixture.empties());
}

TEST_CASE("a session may close before it was ever spoken to") {
  server_fixture fixture;
  wire_client client = fixture.open();
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 1; }));
  fixture.gateway.at(0).link->close(1008, "not today");
  CHECK(client.read_close() == 1008);
  CHECK(client.ended());
  CHECK(fixture.empties());
}

TEST_CASE("a client that does not answer a close is cut") {
  connection_limits limits;
  limits.close = std::chrono::milliseconds(100);
  server_fixture fixture(limits);
  wire_client client = fixture.open();
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 1; }));
  fixture.gateway.at(0).link->close(1000, "");
  CHECK(client.read_data().close_code() == 1000);
  CHECK(fixture.gateway.eventually([](auto& sessions) { return !sessions.empty() && sessions.at(0)->gone; }));
  CHECK(client.ended());
}
