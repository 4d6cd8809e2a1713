#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <string>
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

TEST_CASE("a client that asks before it sends a body is told to go on") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  const auto ask = [&](std::string_view target, std::string_view more) {
    client.send("POST " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(more) + "\r\n");
  };
  SECTION("for a route") {
    ask("/sessions/sess_known/close", "Expect: 100-continue\r\nContent-Length: 2\r\n");
    CHECK(client.read_response(true).status == 100);
    client.send("{}");
    CHECK(client.read_response().status == 200);
  }
  SECTION("for a completion, in any case and in chunks") {
    ask("/v1/chat/completions", "expect: 100-Continue\r\nTransfer-Encoding: Chunked\r\n");
    CHECK(client.read_response(true).status == 100);
    client.send("2\r\n[]\r\n0\r\n\r\n");
    CHECK(client.read_response().status == 400); // it is no object
  }
  SECTION("not if it does not wait") {
    ask("/sessions/sess_known/close", "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}");
  }
  SECTION("not for what is refused") {
    ask("/sessions/sess_known/close", "Expect: 100-continue\r\nContent-Length: 100000000\r\n");
    CHECK(client.read_response().status == 413);
  }
  SECTION("not without a body") {
    client.send("GET /health HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\r\n");
    CHECK(client.read_response().status == 200);
  }
  SECTION("another expectation is not met") {
    ask("/sessions/sess_known/close", "Expect: 200-ok\r\nContent-Length: 2\r\n");
    CHECK(client.read_response().status == 417);
    CHECK(client.ended());
  }
  SECTION("nor are two") {
    ask("/sessions/sess_known/close", "Expect: 100-continue\r\nExpect: x\r\nContent-Length: 2\r\n");
    CHECK(client.read_response().status == 417);
  }
}

TEST_CASE("where the end of a body is not certain, nothing behind it is read as a request") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  const std::string next = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const auto refused = [&](const std::string& head, const std::string& body, int status) {
    client.send("POST /sessions/sess_known/close HTTP/1.1\r\nHost: localhost\r\n" + head + "\r\n" + body + next);
    const auto got = client.read_response();
    CHECK(got.status == status);
    CHECK(got.header("Connection") == "close");
    CHECK(client.ended()); // and says no more
  };
  SECTION("an unknown coding") {
    refused("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n", 501);
  }
  SECTION("one before chunked") {
    refused("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n", 501);
  }
  SECTION("one after chunked") {
    refused("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n", 501);
  }
  SECTION("chunked twice") {
    refused("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", 400);
  }
  SECTION("chunked and something else") {
    refused("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n", 400);
  }
  SECTION("no coding at all") {
    refused("Transfer-Encoding:\r\n", "", 501);
  }
  SECTION("a coding and a length") {
    refused("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n", 400);
  }
  SECTION("a length and a coding") {
    refused("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", 400);
  }
  SECTION("a length and an unknown coding") {
    refused("Content-Length: 4\r\nTransfer-Encoding: xchunked\r\n", "0\r\n\r\n", 400);
  }
  SECTION("two lengths") {
    refused("Content-Length: 2\r\nContent-Length: 5\r\n", "{}", 400);
  }
  SECTION("the same length twice") {
    refused("Content-Length: 2\r\nContent-Length: 2\r\n", "{}", 400);
  }
  SECTION("a list of lengths") {
    refused("Content-Length: 2, 2\r\n", "{}", 400);
  }
  SECTION("a length with a sign") {
    refused("Content-Length: +2\r\n", "{}", 400);
  }
  SECTION("a length below zero") {
    refused("Content-Length: -1\r\n", "{}", 400);
  }
  SECTION("a length in another base") {
    refused("Content-Length: 0x2\r\n", "{}", 400);
  }
  SECTION("a length that no number holds") {
    refused("Content-Length: 18446744073709551618\r\n", "{}", 400);
  }
  SECTION("a space before the colon") {
    refused("Transfer-Encoding : chunked\r\n", "0\r\n\r\n", 400);
  }
  SECTION("a chunk's size in no base") {
    refused("Transfer-Encoding: chunked\r\n", "0x2\r\n{}\r\n0\r\n\r\n", 400);
  }
  SECTION("a chunk's size that no number holds") {
    refused("Transfer-Encoding: chunked\r\n", "10000000000000002\r\n{}\r\n0\r\n\r\n", 400);
  }
  SECTION("a header behind a bare line feed") {
    refused("X: y\nContent-Length: 2\r\n", "{}", 400);
  }
  SECTION("lines that end in bare line feeds") {
    client.send("POST /sessions/sess_known/close HTTP/1.1\nHost: localhost\nContent-Length: 2\n\n{}" + next);
    CHECK(client.read_response().status == 400);
    CHECK(client.ended());
  }
  SECTION("a zero byte in a header") {
    refused(std::string("X: a\0b\r\n", 8), "", 400);
  }
  SECTION("a coding in HTTP/1.0") {
    client.send("POST /sessions/sess_known/close HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + next);
    CHECK(client.read_response().status == 400);
    CHECK(client.ended());
  }
  SECTION("of a completion") {
    client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n" + next);
    CHECK(client.read_response().status == 501);
    CHECK(client.ended());
  }
}

TEST_CASE("bodies with one certain end are read, and the next request behind them") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  const std::string post = "POST /sessions/sess_known/close HTTP/1.1\r\nHost: localhost\r\n";
  client.send(post + "Transfer-Encoding:\tchunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nX: trailer\r\n\r\n");
  CHECK(client.read_response().status == 200);
  client.send(post + "Content-Length: 2\r\nX: a\r\n folded: line\r\n\r\n{}");
  CHECK(client.read_response().status == 200);
  client.send("GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(post.size()) + "\r\n\r\n" +
              post);
  CHECK(client.read_response().status == 200);
  CHECK(client.get("/health").status == 200);
}

TEST_CASE("doubled and trailing slashes lead where single ones do") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  for (const char* target : {"/health/", "//health", "/v1//models", "/v1/models/?x=1"})
    CHECK(client.get(target).status == 200);
  const auto refused = client.get("/v1/chat/completions", "POST", {}, "{}");
  CHECK(refused.body.find("messages") != std::string::npos);
  CHECK(client.get("/v1//chat/completions/", "POST", {}, "{}").body == refused.body);
  wire_client talks = fixture.connect();
  CHECK(talks.upgrade("//v1/realtime/?mode=audio").status == 101);
}

TEST_CASE("limits are for the client that a trusted proxy names") {
  server_fixture fixture;
  fixture.options.admission.sessions_per_address = 1;
  fixture.options.trusted_proxies = "127.0.0.1";
  const auto from = [](const std::string& address) { return "X-Forwarded-For: " + address + "\r\n"; };
  wire_client one = fixture.connect(), again = fixture.connect(), other = fixture.connect();
  CHECK(one.upgrade("/v1/realtime?mode=audio", from("203.0.113.7")).status == 101);
  CHECK(again.upgrade("/v1/realtime?mode=audio", from("198.51.100.1, 203.0.113.7")).status == 429);
  CHECK(other.upgrade("/v1/realtime?mode=audio", from("203.0.113.8")).status == 101);
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 2; }));
  const auto first = fixture.gateway.at(0).info, second = fixture.gateway.at(1).info;
  CHECK(std::set{first.remote, second.remote} == std::set<std::string>{"203.0.113.7", "203.0.113.8"});
  CHECK(std::set{first.group, second.group} == std::set<std::string>{"203.0.113.7", "203.0.113.8"});
}
