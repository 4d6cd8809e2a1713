#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>

using namespace parley::net;

TEST_CASE("the upgrade answers as RFC 6455 wants it") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  const auto got = client.upgrade("/v1/realtime?mode=video", "Sec-WebSocket-Extensions: permessage-deflate\r\n");
  CHECK(got.status == 101);
  CHECK(got.header("Sec-WebSocket-Accept") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  CHECK(got.header("Sec-WebSocket-Extensions").empty());
  CHECK(got.header("Sec-WebSocket-Protocol").empty());
}

TEST_CASE("what the handshake tells reaches the gateway") {
  server_fixture fixture;
  const auto before = std::chrono::steady_clock::now();
  wire_client client = fixture.open("/v1/realtime?mode=chat&model=x&session_id=my%20id&mode=%61udio&duplex=1");
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 1; }));
  const auto info = fixture.gateway.at(0).info;
  CHECK(info.mode == "audio");
  CHECK(info.session_id == "my id");
  CHECK_FALSE(info.resume_token);
  CHECK_FALSE(info.last_event_id);
  CHECK(info.remote == "127.0.0.1");
  CHECK(info.accepted >= before);
  CHECK(info.accepted <= std::chrono::steady_clock::now());
}

TEST_CASE("a claim of a session reaches the gateway") {
  server_fixture fixture;
  wire_client client = fixture.open("/v1/realtime?session_id=sess_a&resume_token=resume_%62&last_event_id=17");
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 1; }));
  const auto info = fixture.gateway.at(0).info;
  CHECK(info.resume_token == "resume_b");
  CHECK(info.last_event_id == "17");
}

TEST_CASE("no mode and an empty mode are two things") {
  server_fixture fixture;
  wire_client none = fixture.open("/v1/realtime");
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 1; }));
  CHECK_FALSE(fixture.gateway.at(0).info.mode);
  wire_client empty = fixture.open("/v1/realtime?mode=");
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 2; }));
  CHECK(fixture.gateway.at(1).info.mode == "");
}

TEST_CASE("the first event behind a bare URL tells what the client speaks") {
  server_fixture fixture;
  wire_client client = fixture.upgraded("/v1/realtime");
  const auto speaks_openai = [&](std::string_view first) {
    client.send_frame(wire_client::text, std::string(first));
    CHECK(client.read_data().payload == first); // the session gets this event, too
    CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 1; }));
    return fixture.gateway.at(0).info.realtime.has_value();
  };
  SECTION("OpenAI's dialect") {
    CHECK(speaks_openai(R"({"type":"session.update","session":{"type":"realtime"}})"));
  }
  SECTION("Parley's own") {
    CHECK_FALSE(speaks_openai(R"({"type":"session.update","session":{"instructions":"a"}})"));
  }
  SECTION("too long to be looked at") {
    const std::string words(256 * 1024, 'x');
    CHECK_FALSE(
        speaks_openai(R"({"type":"session.update","session":{"type":"realtime","instructions":")" + words + R"("}})"));
  }
}

TEST_CASE("who leaves before the first event had no session") {
  server_fixture fixture;
  wire_client client = fixture.upgraded("/v1/realtime");
  client.send_frame(wire_client::close, std::string("\x03\xE8", 2));
  CHECK(client.read_close() == 1000);
  CHECK(fixture.empties());
  CHECK(fixture.gateway.open() == 0);
}

TEST_CASE("one offered subprotocol that is no key is echoed") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  const auto offered = [&](std::string_view headers) {
    const auto got = client.upgrade("/v1/realtime", headers);
    CHECK(got.status == 101);
    return got.header("Sec-WebSocket-Protocol");
  };
  SECTION("key first") {
    CHECK(offered("Sec-WebSocket-Protocol: map-api-key.secret, map.realtime\r\n") == "map.realtime");
  }
  SECTION("in two headers") {
    CHECK(offered("Sec-WebSocket-Protocol: openai-insecure-api-key.k\r\nSec-WebSocket-Protocol: realtime\r\n") ==
          "realtime");
  }
  SECTION("only a key") {
    CHECK(offered("Sec-WebSocket-Protocol: map-api-key.secret\r\n").empty());
  }
}

TEST_CASE("an upgrade after other requests on the same connection") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  CHECK(client.get("/health").status == 200);
  CHECK(client.upgrade().status == 101);
  client.send_frame(wire_client::text, "x");
  CHECK(client.read_data().payload == "x");
}

TEST_CASE("upgrades that are not whole are refused in JSON") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  const std::string base = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
  SECTION("another version") {
    const auto got = client.get("/v1/realtime", "GET",
                                base + "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
    CHECK(got.status == 426);
    CHECK(got.header("Sec-WebSocket-Version") == "13");
  }
  SECTION("no key") {
    CHECK(client.get("/v1/realtime", "GET", base + "Sec-WebSocket-Version: 13\r\n").status == 400);
  }
  SECTION("frames before the answer") {
    client.send("GET /v1/realtime HTTP/1.1\r\nHost: x\r\n" + base +
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" +
                wire_client::encode(wire_client::text, "early"));
    CHECK(client.read_response().status == 400);
  }
  SECTION("another path") {
    CHECK(client.upgrade("/elsewhere").status == 404);
  }
  CHECK(fixture.gateway.open() == 0);
}

TEST_CASE("a token that resumes nothing excuses from no limit, in any dialect") {
  const std::string target = GENERATE(as<std::string>{}, "/openai/v1/realtime", "/openai/realtime", "/v1/live",
                                      "/v1/live/sessions", "/openai/v1/live", "/v1/realtime?dialect=openai",
                                      "/v1/realtime?dialect=openai-beta", "/v1/realtime?model=m&dialect=openai");
  for (const std::string token : {"resume_token=x", "resume_token="}) {
    INFO(target << " with " << token);
    server_fixture fixture;
    fixture.options.admission.sessions_per_address = 2;
    const auto whole = target + (target.find('?') == target.npos ? "?" : "&") + token;
    wire_client first = fixture.open(whole);
    wire_client second = fixture.open(whole);
    CHECK(fixture.connect().upgrade(whole).status == 429);
    CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 2; }));
    CHECK_FALSE(fixture.gateway.at(0).info.resume_token);
  }
}

TEST_CASE("who resumes a session of Parley's own protocol counts as a start, not as one more session") {
  server_fixture fixture;
  fixture.options.admission.sessions_per_address = 1;
  fixture.options.admission.starts_per_address = 3;
  wire_client session = fixture.open("/v1/realtime?mode=audio");
  wire_client back = fixture.open("/v1/realtime?session_id=a&resume_token=x");
  wire_client again = fixture.open("/v1/realtime?session_id=a&resume_token=x");
  CHECK(fixture.connect().upgrade("/v1/realtime?session_id=a&resume_token=x").status == 429);
}
