#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace parley::net;

namespace {

connection_limits short_times() {
  connection_limits limits;
  limits.handshake = std::chrono::milliseconds(500);
  limits.keep_alive = std::chrono::milliseconds(300);
  return limits;
}

} // namespace

TEST_CASE("requests share a connection until one asks for its close") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  for (int i = 0; i < 5; ++i) CHECK(client.get("/health").status == 200);
  const auto last = client.get("/health", "GET", "Connection: close\r\n");
  CHECK(last.status == 200);
  CHECK(last.header("Connection") == "close");
  CHECK(client.ended());
}

TEST_CASE("requests may be sent ahead of their answers") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  client.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /none HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(client.read_response().status == 200);
  CHECK(client.read_response().status == 404);
}

TEST_CASE("HEAD has the length and no body") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  const auto got = client.get("/health", "HEAD");
  CHECK(got.status == 200);
  CHECK(std::stoi(got.header("Content-Length")) > 0);
  CHECK(client.get("/health").status == 200);
}

TEST_CASE("what is no HTTP is refused with 400") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  client.send("SSH-2.0-hello\r\n\r\n");
  const auto got = client.read_response();
  CHECK(got.status == 400);
  CHECK(got.body.find("bad_request") != std::string::npos);
  CHECK(client.ended());
}

TEST_CASE("a flood of headers ends at its bound") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  SECTION("one long header") {
    client.send("GET /health HTTP/1.1\r\nX: " + std::string(64u << 10, 'x'));
    CHECK(client.read_response().status == 431);
  }
  SECTION("many headers") {
    std::string many = "GET /health HTTP/1.1\r\n";
    for (int i = 0; i < 5000; ++i) many += "X-" + std::to_string(i) + ": y\r\n";
    client.send(many + "\r\n");
    CHECK(client.read_response().status == 431);
  }
  SECTION("an endless target") {
    client.send("GET /" + std::string(64u << 10, 'x'));
    CHECK(client.read_response().status == 431);
  }
  CHECK(client.ended());
  CHECK(fixture.empties());
}

TEST_CASE("a body over its bound is refused before it is read") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  client.send("POST /sessions/x/close HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n{");
  CHECK(client.read_response().status == 413);
  CHECK(client.ended());
}

TEST_CASE("a client that says nothing is not waited for") {
  server_fixture fixture(short_times());
  wire_client client = fixture.connect();
  SECTION("no byte") {}
  SECTION("half a header") {
    client.send("GET /health HT");
  }
  SECTION("half a body") {
    client.send("POST /sessions/x/close HTTP/1.1\r\nContent-Length: 10\r\n\r\n{");
  }
  SECTION("after an answer") {
    CHECK(client.get("/health").status == 200);
  }
  CHECK(client.ended());
  CHECK(fixture.empties());
}

TEST_CASE("with too many connections, the oldest without a session makes room") {
  connection_limits limits;
  limits.connections = 3;
  server_fixture fixture(limits);
  wire_client talking = fixture.open();
  wire_client first = fixture.connect();
  CHECK(first.get("/health").status == 200);
  wire_client second = fixture.connect();
  CHECK(second.get("/health").status == 200);
  wire_client third = fixture.connect();
  CHECK(third.get("/health").status == 200);
  CHECK(first.ended());
  CHECK(second.get("/health").status == 200);
  CHECK(third.get("/health").status == 200);
  talking.send_frame(wire_client::text, "undisturbed");
  CHECK(talking.read_data().payload == "undisturbed");
}

TEST_CASE("connections over the bound are closed at once where all others have sessions") {
  connection_limits limits;
  limits.connections = 2;
  server_fixture fixture(limits);
  wire_client first = fixture.open();
  {
    wire_client second = fixture.open();
    wire_client third = fixture.connect();
    CHECK(third.ended());
    first.send_frame(wire_client::text, "undisturbed");
    CHECK(first.read_data().payload == "undisturbed");
  }
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 2 && sessions.at(1)->gone; }));
  CHECK(fixture.comes_to(1));
  wire_client fourth = fixture.open();
}

TEST_CASE("whoever holds every connection without saying a word does not keep others out") {
  connection_limits limits;
  limits.connections = 100;
  server_fixture fixture(limits);
  std::vector<wire_client> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(fixture.connect());
  std::vector<wire_client> sessions;
  for (int i = 0; i < 50; ++i) {
    sessions.push_back(fixture.open());
    silent.push_back(fixture.connect());
  }
  for (auto& each : sessions) {
    each.send_frame(wire_client::text, "hello");
    CHECK(each.read_data().payload == "hello");
  }
}
