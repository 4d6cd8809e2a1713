#include "net/channel/frame_buffer.hpp"
#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace parley::net;

// Large messages that arrive slowly, or that nobody takes.

namespace {

constexpr std::size_t large = 1u << 20;

/// Each client may have two large messages at a time, all together three.
struct tight_fixture : server_fixture {
  tight_fixture() : server_fixture(tight()) {}
  static connection_limits tight() {
    connection_limits limits;
    limits.received_bytes = 3 * large + 1000;
    limits.received_bytes_per_client = 2 * large + 1000;
    return limits;
  }

  /// A connection that has sent all of a message but its end, of which the server has read a part at least.
  wire_client unfinished(std::size_t bytes = large) {
    wire_client client = open();
    client.send_frame(wire_client::text, std::string(bytes, 'x'), false);
    client.send_frame(wire_client::ping, "?");
    while (client.read_frame()->op != wire_client::pong) {
    }
    return client;
  }

  bool serves() {
    wire_client client = open();
    client.send_frame(wire_client::text, "hello");
    return client.read_data().payload == "hello";
  }
};

std::string body_of(std::size_t bytes) {
  return R"({"messages":[{"role":"user","content":")" + std::string(bytes, 'x') + R"("}]})";
}

std::string request_for(const std::string& body) {
  return "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

} // namespace

TEST_CASE("a client has so much memory for large messages, over all its connections") {
  tight_fixture fixture;
  std::vector<wire_client> slow;
  for (int i = 0; i < 2; ++i) slow.push_back(fixture.unfinished());
  {
    wire_client third = fixture.open();
    third.send_frame(wire_client::text, std::string(large, 'x'), false);
    CHECK(third.read_close() == 1013);
  }
  CHECK(fixture.serves());
  SECTION("which is given back when a message is taken") {
    slow.back().send_frame(wire_client::continuation, "end");
    CHECK(slow.back().read_data().payload.size() == large + 3);
  }
  SECTION("which is given back when a connection goes") {
    slow.pop_back();
    CHECK(fixture.comes_to(1));
  }
  wire_client fourth = fixture.open();
  fourth.send_frame(wire_client::text, std::string(large, 'x'));
  CHECK(fourth.read_data().payload.size() == large);
}

TEST_CASE("messages that the session has not taken count, and those of usual size never do") {
  tight_fixture fixture;
  fixture.gateway.on_text = [](echo_gateway::session&, std::string&&) {};
  wire_client client = fixture.open();
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 1; }));
  for (int i = 0; i < 2; ++i) client.send_frame(wire_client::text, std::string(large, 'x'));
  for (int i = 0; i < 8; ++i) client.send_frame(wire_client::text, std::string(frame_buffer::trusted, 'x'));
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.at(0)->frames.size() == 10; }));
  client.send_frame(wire_client::text, std::string(large, 'x'));
  CHECK(client.read_close() == 1013);
}

TEST_CASE("bodies of completions count likewise, until they are answered") {
  tight_fixture fixture;
  fixture.gateway.on_text = [](echo_gateway::session&, std::string&&) {};
  std::vector<wire_client> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.push_back(fixture.connect());
    waiting.back().send(request_for(body_of(large - 200)));
    CHECK(fixture.gateway.eventually([&](auto& sessions) { return sessions.size() == waiting.size(); }));
  }
  {
    wire_client third = fixture.connect();
    third.send(request_for(body_of(large)));
    const auto refused = third.read_response();
    CHECK(refused.status == 503);
    CHECK(refused.header("Retry-After") == "1");
  }
  waiting.pop_back();
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.at(1)->gone; }));
  CHECK(fixture.comes_to(1)); // with the connection its bytes have gone
  wire_client fourth = fixture.connect();
  fourth.send(request_for(body_of(large - 200)));
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 3; }));
}
