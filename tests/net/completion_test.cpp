#include "tests/net/server_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

using namespace parley::net;
namespace protocol = parley::protocol;
using nlohmann::json;
using parley::tests::temporary_folder;

// POST /v1/chat/completions over the wire, with a session played by the test.

namespace {

const std::string hi = R"({"model":"m","messages":[{"role":"user","content":"hi"}]})";
const std::string hi_streamed = R"({"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]})";

void say(const echo_gateway::session& to, protocol::server_event event) {
  to.guest->hand_over(std::move(event));
}

void begin(const echo_gateway::session& session) {
  say(session, protocol::session_queue_done{});
  protocol::session_created created;
  created.session_id = "sess_abc";
  say(session, created);
}

protocol::output_delta words(std::string text) {
  protocol::output_delta out;
  out.kind = protocol::output_kind::text;
  out.text = std::move(text);
  return out;
}

protocol::response_done hello() {
  protocol::response_done out;
  out.text = "hello";
  out.reason = "turn_end";
  out.used.emplace();
  out.used->input_text = 2;
  out.used->output_text = 1;
  return out;
}

/// A chat session that opens and answers each turn with "he", "llo".
void answer(echo_gateway::session& session, const protocol::client_event& event) {
  if (std::holds_alternative<protocol::init_event>(event)) {
    begin(session);
  } else if (const auto* const turn = std::get_if<protocol::chat_append_event>(&event)) {
    if (turn->streaming)
      for (const char* text : {"he", "llo"}) say(session, words(text));
    say(session, hello());
  } else {
    say(session, protocol::session_closed{"user_stop", {}});
    session.guest->close(1000, "user_stop");
  }
}

wire_client::response complete(wire_client& client, const std::string& body, const std::string& headers = "") {
  return client.get("/v1/chat/completions", "POST", headers, body);
}

std::string request(const std::string& body, const std::string& headers = "", const std::string& version = "1.1") {
  return "POST /v1/chat/completions HTTP/" + version + "\r\nHost: x\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// Reads the chunks of an answer up to the last one; returns what they hold.
std::string read_chunks(wire_client& client) {
  std::string all;
  for (;;) {
    std::string size;
    while (!size.ends_with("\r\n")) size += client.read_bytes(1);
    const auto bytes = std::stoul(size, nullptr, 16);
    all += client.read_bytes(bytes);
    client.read_bytes(2);
    if (bytes == 0) return all;
  }
}

/// What follows until the connection ends.
std::string read_rest(wire_client& client) {
  std::string all;
  try {
    for (;;) all += client.read_bytes(1);
  } catch (const std::runtime_error&) {
    return all; // ended
  }
}

} // namespace

TEST_CASE("a completion is one turn of a chat session, and its session ends with it") {
  server_fixture fixture;
  fixture.gateway.on_said = answer;
  wire_client client = fixture.connect();
  const auto got = complete(client, hi, "Connection: close\r\n");
  CHECK(got.status == 200);
  CHECK(got.header("Content-Type") == "application/json");
  CHECK(got.header("Connection") == "close");
  const auto body = json::parse(got.body);
  CHECK(body["id"] == "chatcmpl-abc");
  CHECK(body["choices"][0]["message"]["content"] == "hello");
  CHECK(body["usage"]["total_tokens"] == 3);
  CHECK(client.ended());
  CHECK(fixture.gateway.eventually([](const auto& all) { return all.size() == 1 && all[0]->gone; }));
  const auto session = fixture.gateway.at(0);
  CHECK(session.info.mode == "chat");
  REQUIRE(session.said.size() == 3);
  CHECK(std::holds_alternative<protocol::init_event>(session.said[0]));
  CHECK(std::get<protocol::close_event>(session.said[2]).reason == "user_stop");
  CHECK(fixture.empties());
}

TEST_CASE("a streamed completion is server-sent events") {
  server_fixture fixture;
  fixture.gateway.on_said = answer;
  wire_client client = fixture.connect();
  client.send(request(hi_streamed, "Connection: close\r\n"));
  const auto got = client.read_response(true);
  CHECK(got.status == 200);
  CHECK(got.header("Content-Type") == "text/event-stream");
  CHECK(got.header("Transfer-Encoding") == "chunked");
  CHECK(got.header("X-Accel-Buffering") == "no");
  CHECK(got.header("Connection") == "close");
  CHECK(client.ended());
  CHECK(fixture.empties());
}

TEST_CASE("completions share a connection with each other and with other requests") {
  server_fixture fixture;
  fixture.gateway.on_said = answer;
  wire_client client = fixture.connect();
  for (int i = 0; i < 3; ++i) {
    const auto whole = complete(client, hi);
    CHECK(whole.status == 200);
    CHECK(whole.header("Connection").empty());
    CHECK(json::parse(whole.body)["choices"][0]["message"]["content"] == "hello");
    client.send(request(hi_streamed));
    CHECK(client.read_response(true).header("Connection").empty());
    const auto events = read_chunks(client);
    CHECK(events.starts_with("data: {"));
    CHECK(events.ends_with("data: [DONE]\n\n"));
    CHECK(client.get("/health").status == 200);
    CHECK(complete(client, "{}").status == 400);
  }
  CHECK(fixture.gateway.eventually([](const auto& all) {
    return all.size() == 6 && std::all_of(all.begin(), all.end(), [](const auto& each) { return each->gone; });
  }));
  CHECK(fixture.comes_to(1));
  const auto last = complete(client, hi, "Connection: close\r\n");
  CHECK(last.header("Connection") == "close");
  CHECK(client.ended());
  CHECK(fixture.empties());
}

TEST_CASE("a connection that has had its completion counts as one without a session") {
  connection_limits limits;
  limits.connections = 2;
  server_fixture fixture(limits);
  fixture.gateway.on_said = answer;
  wire_client first = fixture.connect();
  CHECK(complete(first, hi).status == 200);
  CHECK(fixture.gateway.eventually([](const auto& all) { return all.size() == 1 && all[0]->gone; }));
  wire_client second = fixture.connect();
  CHECK(second.get("/health").status == 200);
  wire_client third = fixture.connect();
  CHECK(third.get("/health").status == 200);
  CHECK(first.ended());
  CHECK(second.get("/health").status == 200);
}

TEST_CASE("a connection that has had its completion is not kept for ever, nor over the server's end") {
  connection_limits limits;
  const auto soon = std::chrono::milliseconds(200);
  SECTION("nothing comes") {
    limits.keep_alive = soon;
  }
  SECTION("half a request comes") {
    limits.handshake = soon;
  }
  SECTION("the server stops") {}
  server_fixture fixture(limits);
  fixture.gateway.on_said = answer;
  wire_client client = fixture.connect();
  CHECK(complete(client, hi).status == 200);
  if (limits.handshake == soon) client.send("POST /v1");
  if (limits.handshake != soon && limits.keep_alive != soon) fixture.start().stop(std::chrono::seconds(10));
  CHECK(client.ended());
  CHECK(fixture.empties());
}

TEST_CASE("who sends more before the answer has it closed behind the answer") {
  server_fixture fixture;
  fixture.gateway.on_said = [](echo_gateway::session& session, const protocol::client_event& event) {
    if (!std::holds_alternative<protocol::chat_append_event>(event)) answer(session, event); // else the test goes on
  };
  wire_client client = fixture.connect();
  client.send(request(hi) + "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(fixture.gateway.eventually([](const auto& all) { return all.size() == 1 && all[0]->said.size() == 2; }));
  auto session = fixture.gateway.at(0);
  say(session, hello());
  const auto got = client.read_response();
  CHECK(got.status == 200);
  CHECK(got.header("Connection") == "close");
  CHECK(client.ended());
  CHECK(fixture.empties());
}

TEST_CASE("a client of HTTP/1.0 gets no chunks, and the end of the connection as the end of its stream") {
  server_fixture fixture;
  fixture.gateway.on_said = answer;
  wire_client client = fixture.connect();
  SECTION("a stream") {
    const std::string headers = GENERATE("", "Connection: keep-alive\r\n");
    client.send(request(hi_streamed, headers, "1.0"));
    const auto got = client.read_response(true);
    CHECK(got.status == 200);
    CHECK(got.header("Transfer-Encoding").empty());
    CHECK(got.header("Connection") == "close");
    const auto events = read_rest(client);
    CHECK(events.starts_with("data: {"));
    CHECK(events.ends_with("data: [DONE]\n\n"));
  }
  SECTION("a stream that fails") {
    fixture.gateway.on_said = [](echo_gateway::session& session, const protocol::client_event& event) {
      if (std::holds_alternative<protocol::init_event>(event)) return begin(session);
      say(session, words("he"));
      say(session, protocol::error_event{protocol::error_code::inference_error, "so it is"});
    };
    client.send(request(hi_streamed, "", "1.0"));
    CHECK(client.read_response(true).header("Transfer-Encoding").empty());
    const auto events = read_rest(client);
    CHECK(events.starts_with("data: {"));
    CHECK(events.find("so it is") != std::string::npos);
    CHECK(events.ends_with("}\n\n"));
  }
  SECTION("a whole answer") {
    client.send(request(hi, "", "1.0"));
    const auto got = client.read_response();
    CHECK(got.header("Connection") == "close");
    CHECK(json::parse(got.body)["choices"][0]["message"]["content"] == "hello");
    CHECK(client.ended());
  }
  SECTION("a whole answer, and one more") {
    for (int i = 0; i < 2; ++i) {
      client.send(request(hi, "Connection: keep-alive\r\n", "1.0"));
      const auto got = client.read_response();
      CHECK(got.header("Connection") == "keep-alive");
      CHECK(json::parse(got.body)["choices"][0]["message"]["content"] == "hello");
    }
    client.send("GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    CHECK(client.read_response().header("Connection") == "keep-alive");
    client.send("GET /health HTTP/1.0\r\n\r\n");
    CHECK(client.read_response().header("Connection") == "close");
    CHECK(client.ended());
  }
}

TEST_CASE("a completion whose client waits to be asked for its body is asked at once") {
  server_fixture fixture;
  fixture.gateway.on_said = answer;
  wire_client client = fixture.connect();
  const auto head = [](std::size_t bytes) {
    return "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: " +
           std::to_string(bytes) + "\r\n\r\n";
  };
  for (int i = 0; i < 2; ++i) {
    client.send(head(hi.size()));
    CHECK(client.read_response(true).head == "HTTP/1.1 100 Continue\r\n\r\n");
    client.send(hi);
    CHECK(client.read_response().status == 200);
  }
  client.send(head(1'000'000'000));
  CHECK(client.read_response().status == 413);
}

TEST_CASE("pages that may open sessions may read completions, and are told so beforehand") {
  server_fixture fixture;
  fixture.options.allowed_origins = "https://app.example";
  fixture.gateway.on_said = answer;
  wire_client client = fixture.connect();
  const std::string page = "Origin: https://app.example\r\n";
  const auto ahead = client.get("/v1/chat/completions", "OPTIONS",
                                page + "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: "
                                       "authorization,content-type,x-stainless-os\r\n");
  CHECK(ahead.status == 204);
  CHECK(ahead.header("Access-Control-Allow-Origin") == "https://app.example");
  CHECK(ahead.header("Access-Control-Allow-Methods") == "POST, OPTIONS");
  CHECK(ahead.header("Access-Control-Allow-Headers") == "authorization,content-type,x-stainless-os");
  CHECK(ahead.header("Vary") == "Origin");
  CHECK(ahead.header("Content-Length").empty());
  for (const std::string& body : {hi, std::string("{}")}) {
    const auto got = complete(client, body, page);
    CHECK(got.status == (body == hi ? 200 : 400));
    CHECK(got.header("Access-Control-Allow-Origin") == "https://app.example");
  }
  client.send(request(hi_streamed, page));
  CHECK(client.read_response(true).header("Access-Control-Allow-Origin") == "https://app.example");
  read_chunks(client);
  CHECK(client.get("/v1/models", "GET", page).header("Access-Control-Allow-Origin") == "https://app.example");
  // What is for operators is for no page elsewhere, and other pages are told nothing.
  CHECK(client.get("/status", "GET", page).header("Access-Control-Allow-Origin").empty());
  const std::string other = "Origin: https://evil.example\r\n";
  CHECK(client.get("/v1/chat/completions", "OPTIONS", other).header("Access-Control-Allow-Origin").empty());
  CHECK(client.get("/v1/models", "GET", other).header("Access-Control-Allow-Origin").empty());
  CHECK(client.get("/v1/models").header("Access-Control-Allow-Origin").empty());
}

TEST_CASE("who leaves ends the session, and so does who never reads") {
  connection_limits limits;
  limits.handshake = std::chrono::milliseconds(300);
  limits.outbox_bytes = 64u << 20;
  server_fixture fixture(limits);
  SECTION("gone before the answer") {
    wire_client client = fixture.connect();
    client.send(request(hi));
    CHECK(fixture.gateway.eventually([](const auto& all) { return all.size() == 1; }));
    client.reset();
  }
  SECTION("not reading") {
    fixture.gateway.on_said = [](echo_gateway::session& session, const protocol::client_event& event) {
      answer(session, event);
      if (!std::holds_alternative<protocol::init_event>(event)) return;
      for (int i = 0; i < 30; ++i) say(session, words(std::string(1 << 20, 'x')));
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
  using enum protocol::error_code;
  const auto [code, status] = GENERATE(table<protocol::error_code, int>(
      {{queue_full, 429}, {service_unavailable, 503}, {invalid_payload, 400}, {inference_error, 500}}));
  fixture.gateway.on_said = [code = code](echo_gateway::session& session, const protocol::client_event&) {
    say(session, protocol::error_event{code, "so it is"});
  };
  wire_client client = fixture.connect();
  const auto got = complete(client, hi);
  CHECK(got.status == status);
  CHECK(json::parse(got.body)["error"]["code"] == protocol::traits(code).wire);
  CHECK(json::parse(got.body)["error"]["message"] == "so it is");
}

TEST_CASE("a session that closes without a word is a 503") {
  server_fixture fixture;
  fixture.gateway.on_said = [](echo_gateway::session& session, const auto&) { session.guest->close(1011, "oops"); };
  wire_client client = fixture.connect();
  const auto got = complete(client, hi);
  CHECK(got.status == 503);
  CHECK(json::parse(got.body)["error"]["message"] == "the session ended: oops");
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
  fixture.gateway.on_said = answer;
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
  CHECK(fixture.connect().get("/v1/chat/completions").header("Allow") == "POST, OPTIONS");
  CHECK(fixture.gateway.open() == 0);
}
