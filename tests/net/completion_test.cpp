#include "tests/net/server_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <string>

using namespace parley::net;
using nlohmann::json;
using parley::tests::temporary_folder;

// POST /v1/chat/completions over the wire, with a session played by the test.

namespace {

const std::string hi = R"({"model":"m","messages":[{"role":"user","content":"hi"}]})";
const std::string hi_streamed = R"({"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]})";

void say(echo_gateway::session& to, const std::string& frame) {
  to.link->send(std::make_shared<const std::string>(frame));
}

/// A chat session that opens and answers each turn with "he", "llo".
void answer(echo_gateway::session& session, std::string&& frame) {
  session.link->taken(frame.size());
  const auto event = json::parse(frame);
  if (event["type"] == "session.init") {
    say(session, R"({"type":"session.queue_done"})");
    say(session, R"({"type":"session.created","session_id":"sess_abc"})");
  } else if (event["type"] == "input.append") {
    if (event["input"]["streaming"] == true)
      for (const char* text : {"he", "llo"})
        say(session, R"({"type":"response.output.delta","kind":"text","text":")" + std::string(text) + R"("})");
    say(session, R"({"type":"response.done","text":"hello","reason":"turn_end","usage":{"total_tokens":3,)"
                 R"("input_tokens":2,"output_tokens":1}})");
  } else {
    say(session, R"({"type":"session.closed","reason":"user_stop"})");
    session.link->close(1000, "user_stop");
  }
}

wire_client::response complete(wire_client& client, const std::string& body, const std::string& headers = "") {
  return client.get("/v1/chat/completions", "POST", headers, body);
}

std::string request(const std::string& body) {
  return "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

} // namespace

TEST_CASE("a completion is one turn of a chat session, and its session ends with it") {
  server_fixture fixture;
  fixture.gateway.on_text = answer;
  wire_client client = fixture.connect();
  const auto got = complete(client, hi);
  CHECK(got.status == 200);
  CHECK(got.header("Content-Type") == "application/json");
  const auto body = json::parse(got.body);
  CHECK(body["id"] == "chatcmpl-abc");
  CHECK(body["choices"][0]["message"]["content"] == "hello");
  CHECK(body["usage"]["total_tokens"] == 3);
  CHECK(client.ended());
  CHECK(fixture.gateway.eventually([](const auto& all) { return all.size() == 1 && all[0]->gone; }));
  const auto session = fixture.gateway.at(0);
  CHECK(session.info.mode == "chat");
  REQUIRE(session.frames.size() == 3);
  CHECK(json::parse(session.frames[2])["type"] == "session.close");
  CHECK(fixture.empties());
}

TEST_CASE("a streamed completion is server-sent events") {
  server_fixture fixture;
  fixture.gateway.on_text = answer;
  wire_client client = fixture.connect();
  client.send(request(hi_streamed));
  const auto got = client.read_response(true);
  CHECK(got.status == 200);
  CHECK(got.header("Content-Type") == "text/event-stream");
  CHECK(got.header("Transfer-Encoding") == "chunked");
  CHECK(client.ended());
  CHECK(fixture.empties());
}

TEST_CASE("who leaves ends the session, and so does who never reads") {
  connection_limits limits;
  limits.handshake = std::chrono::milliseconds(300);
  limits.outbox_bytes = 64u << 20;
  server_fixture fixture(limits);
  SECTION("gone before the answer") {
    fixture.gateway.on_text = [](auto& session, auto&& frame) { session.link->taken(frame.size()); };
    wire_client client = fixture.connect();
    client.send(request(hi));
    CHECK(fixture.gateway.eventually([](const auto& all) { return all.size() == 1; }));
    client.reset();
  }
  SECTION("not reading") {
    fixture.gateway.on_text = [](echo_gateway::session& session, std::string&& frame) {
      answer(session, std::string(frame));
      if (json::parse(frame)["type"] != "session.init") return;
      const std::string words(1 << 20, 'x');
      for (int i = 0; i < 30; ++i)
        say(session, R"({"type":"response.output.delta","kind":"text","text":")" + words + R"("})");
    };
    wire_client client = fixture.connect();
    client.shrink_receive_buffer();
    client.send(request(hi_streamed));
    CHECK(fixture.gateway.eventually([](const auto& all) { return all.size() == 1 && all[0]->gone; }));
  }
  CHECK(fixture.gateway.eventually([](const auto& all) { return all[0]->gone; }));
  CHECK(fixture.empties());
}

TEST_CASE("errors of the session have a status of their own") {
  server_fixture fixture;
  const auto [code, status] = GENERATE(table<std::string, int>(
      {{"queue_full", 429}, {"service_unavailable", 503}, {"invalid_payload", 400}, {"inference_error", 500}}));
  fixture.gateway.on_text = [code = code](echo_gateway::session& session, std::string&& frame) {
    session.link->taken(frame.size());
    say(session, R"({"type":"error","error":{"code":")" + code + R"(","message":"so it is"}})");
  };
  wire_client client = fixture.connect();
  const auto got = complete(client, hi);
  CHECK(got.status == status);
  CHECK(json::parse(got.body)["error"]["code"] == code);
  CHECK(json::parse(got.body)["error"]["message"] == "so it is");
}

TEST_CASE("a session that closes without a word is a 503") {
  server_fixture fixture;
  fixture.gateway.on_text = [](echo_gateway::session& session, std::string&&) { session.link->close(1011, "oops"); };
  wire_client client = fixture.connect();
  CHECK(complete(client, hi).status == 503);
}

TEST_CASE("nobody sends a body before it is known who it is") {
  temporary_folder folder;
  server_fixture fixture;
  fixture.options.keys_file =
      folder.write("keys", "ann " + std::string(64, 'a') + "\n"); // the hash of a key that nobody knows
  wire_client client = fixture.connect();
  client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n");
  const auto got = client.read_response();
  CHECK(got.status == 401);
  CHECK(json::parse(got.body)["error"]["code"] == "invalid_api_key");
  CHECK(fixture.gateway.open() == 0);
}

TEST_CASE("a completion may be larger than other requests, up to its own bound") {
  connection_limits limits;
  limits.body_bytes = 1000;
  limits.chat_message_bytes = 5000;
  server_fixture fixture(limits);
  fixture.gateway.on_text = answer;
  const auto padded = [&](std::size_t bytes) {
    return R"({"messages":[{"role":"user","content":")" + std::string(bytes, 'x') + R"("}]})";
  };
  wire_client first = fixture.connect();
  CHECK(complete(first, padded(4000)).status == 200);
  wire_client second = fixture.connect();
  CHECK(complete(second, padded(6000)).status == 413);
  wire_client third = fixture.connect();
  CHECK(third.get("/sessions/sess_known/close", "POST", "", padded(2000)).status == 413);
}

TEST_CASE("what is no request is told in this API's words") {
  server_fixture fixture;
  for (const char* body : {"", "{", "{}", R"({"messages":[]  ,"n":9})"}) {
    wire_client client = fixture.connect();
    const auto got = complete(client, body);
    CHECK(got.status == 400);
    CHECK(json::parse(got.body)["error"]["type"] == "invalid_request_error");
  }
  CHECK(fixture.connect().get("/v1/chat/completions").header("Allow") == "POST");
  CHECK(fixture.gateway.open() == 0);
}
