#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace parley::net;
using nlohmann::json;

namespace {

bool is_error(const wire_client::response& got, int status, const std::string& code) {
  const json body = json::parse(got.body);
  return got.status == status && got.header("Content-Type") == "application/json" && body["error"]["code"] == code &&
         body["error"]["message"].is_string();
}

} // namespace

TEST_CASE("health and version") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  const auto health = client.get("/health");
  CHECK(health.status == 200);
  CHECK(json::parse(health.body)["status"] == "healthy");
  CHECK(json::parse(health.body)["version"].is_string());
}

TEST_CASE("who asks for its health while the model is loaded hears 503 and why") {
  server_fixture fixture;
  fixture.gateway.still_loading = true;
  wire_client client = fixture.connect();
  const auto health = client.get("/health");
  CHECK(health.status == 503);
  CHECK(json::parse(health.body)["status"] == "loading");
  CHECK(json::parse(health.body)["version"].is_string());
  fixture.gateway.still_loading = false;
  CHECK(client.get("/health").status == 200);
}

TEST_CASE("readiness is the gateway's") {
  server_fixture fixture;
  SECTION("ready") {
    CHECK(fixture.connect().get("/ready").status == 200);
  }
  SECTION("not ready, with the reason as it is") {
    fixture.gateway.readiness = {false, "the model \"x\" is loading"};
    const auto got = fixture.connect().get("/ready");
    CHECK(is_error(got, 503, "service_unavailable"));
    CHECK(json::parse(got.body)["error"]["message"] == "the model \"x\" is loading");
  }
}

TEST_CASE("a page learns before it opens the microphone what it would fail for") {
  server_fixture fixture;
  fixture.options.model.clear();
  fixture.gateway.served = "MiniCPM-o-4_5";
  const bool ready = GENERATE(true, false);
  fixture.gateway.readiness = {ready, "no worker is up"};
  wire_client client = fixture.connect();
  const json body = json::parse(client.get("/ready").body);
  CHECK(body["model"] == "MiniCPM-o-4_5");
  CHECK(body["recording"] == false);
  CHECK(body["key_required"] == false);
  CHECK(body["name_allowed"] == true);
  CHECK(body.contains("status") == ready);
  CHECK(body.contains("error") == !ready);
}

TEST_CASE("whether a page may open sessions under the name that it was loaded by is told beforehand") {
  server_fixture fixture;
  fixture.options.names = "talk.example";
  const auto [host, allowed] = GENERATE(table<std::string, bool>({{"127.0.0.1", true},
                                                                  {"talk.example", true},
                                                                  {"talk.example:8006", true},
                                                                  {"192.0.2.7:8006", true},
                                                                  {"evil.example", false}}));
  INFO(host);
  wire_client client = fixture.connect();
  client.send("GET /ready HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  CHECK(json::parse(client.read_response().body)["name_allowed"] == allowed);
  client.send("GET /v1/realtime HTTP/1.1\r\nHost: " + host + "\r\nOrigin: http://" + host +
              "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
              "dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  CHECK((client.read_response().status == 101) == allowed);
}

TEST_CASE("status joins the gateway's object with what the network side knows") {
  server_fixture fixture;
  fixture.gateway.status_json = GENERATE("{}", " { } ", R"({"workers":[{"id":"w"}],"queue":{"length":3}})");
  const auto got = fixture.connect().get("/status");
  CHECK(got.status == 200);
  const json body = json::parse(got.body);
  CHECK(body["version"].is_string());
  CHECK(body["uptime_s"].is_number());
  CHECK(body["connections"] == 1);
  if (fixture.gateway.status_json.size() > 5) CHECK(body["queue"]["length"] == 3);
}

TEST_CASE("a gateway that does not answer is a 504, and the connection goes on") {
  connection_limits limits;
  limits.handshake = std::chrono::milliseconds(500);
  server_fixture fixture(limits);
  fixture.gateway.answers_status = false;
  wire_client client = fixture.connect();
  CHECK(is_error(client.get("/status"), 504, "timeout"));
  CHECK(client.get("/health").status == 200);
}

TEST_CASE("the default voice goes out as float32") {
  server_fixture fixture;
  SECTION("none") {
    CHECK(is_error(fixture.connect().get("/api/default_ref_audio"), 404, "not_found"));
  }
  SECTION("one") {
    fixture.options.voice = [] {
      return named_voice{"a \"calm\" voice.wav",
                         std::make_shared<const std::vector<float>>(std::vector<float>{0.0f, 0.5f, -1})};
    };
    const auto got = fixture.connect().get("/api/default_ref_audio");
    CHECK(got.status == 200);
    CHECK(json::parse(got.body) == json{{"name", "a \"calm\" voice.wav"},
                                        {"duration", 0.0},
                                        {"sample_rate", 16000},
                                        {"samples", 3},
                                        {"base64", "AAAAAAAAAD8AAIC/"}});
  }
  SECTION("its length in seconds") {
    fixture.options.voice = [] {
      return named_voice{"x.wav", std::make_shared<const std::vector<float>>(20'000, 0.0f)};
    };
    const json voice = json::parse(fixture.connect().get("/api/default_ref_audio").body);
    CHECK(voice["duration"] == 1.25);
    CHECK(voice["samples"] == 20'000);
  }
}

TEST_CASE("the model has a name") {
  server_fixture fixture;
  fixture.options.model = "tiny \"omni\"";
  const json body = json::parse(fixture.connect().get("/v1/models").body);
  CHECK(body["object"] == "list");
  CHECK(body["data"][0]["id"] == "tiny \"omni\"");
  CHECK(body["data"][0]["object"] == "model");
}

TEST_CASE("without a name of its own the server tells that of its workers' model") {
  server_fixture fixture;
  fixture.options.model.clear();
  wire_client client = fixture.connect();
  CHECK(json::parse(client.get("/v1/models").body)["data"].empty());
  CHECK(client.get("/v1/models/nano").status == 404);
  fixture.gateway.served = "nano";
  CHECK(json::parse(client.get("/v1/models").body)["data"][0]["id"] == "nano");
  CHECK(client.get("/v1/models/nano").status == 200);
}

TEST_CASE("one model is described, and others are unknown in OpenAI's words") {
  server_fixture fixture;
  fixture.options.model = "tiny omni";
  wire_client client = fixture.connect();
  const json all = json::parse(client.get("/v1/models").body);
  const auto got = client.get("/v1/models/tiny%20omni");
  CHECK(got.status == 200);
  CHECK(json::parse(got.body) == all["data"][0]);
  for (const std::string id : {"gpt%22-4", "openbmb/MiniCPM-o-4_5", "%ff"}) {
    INFO(id);
    const auto unknown = client.get("/v1/models/" + id);
    CHECK(unknown.status == 404);
    const json error = json::parse(unknown.body)["error"];
    CHECK(error["code"] == "model_not_found");
    CHECK(error["type"] == "invalid_request_error");
    CHECK(error["message"].is_string());
    CHECK(error["param"].is_null());
  }
  CHECK(client.get("/v1/models/x", "POST", "", "{}").status == 405);
}

TEST_CASE("endpoints of the official demo are served, or say where to go instead") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  CHECK(json::parse(client.get("/workers").body)["total"] == 0);
  CHECK(json::parse(client.get("/api/queue").body)["queue_length"] == 0);
  const auto says = [&](std::string_view target, const std::string& word, std::string_view method = "GET") {
    INFO(method << " " << target);
    const auto got = client.get(target, method);
    CHECK(is_error(got, 410, "gone"));
    CHECK(json::parse(got.body)["error"]["message"].get<std::string>().find(word) != std::string::npos);
  };
  says("/ws/chat", "/v1/realtime?mode=chat");
  says("/ws/half_duplex/hdx_1", "/v1/realtime?mode=audio");
  says("/ws/duplex/adx_1", "/v1/realtime?mode=audio");
  says("/api/chat", "/v1/chat/completions", "POST");
  says("/api/queue/ticket_1", "GET /api/queue");
  says("/api/queue/ticket_1", "closing", "DELETE");
  says("/api/sessions/a", "/sessions/{id}/meta.json");
  says("/api/sessions/a/assets/user_audio/0.wav", "input.wav");
  says("/api/sessions/a/upload-recording", "record.dir", "POST");
  says("/s/a", "/replay.html");
  says("/api/assets/ref_audio", "voice.default");
  says("/api/config/eta", "queue.base_chat_seconds", "PUT");
  const auto upgrade = fixture.connect().upgrade("/ws/chat");
  CHECK(upgrade.status == 410);
  CHECK(is_error(client.get("/api/frontend_defaults"), 404, "not_found"));
}

TEST_CASE("a session is closed over HTTP") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  const auto close = [&](std::string_view id, std::string_view body) {
    return client.get("/sessions/" + std::string(id) + "/close", "POST", "", body);
  };
  const auto got = close("sess_known", R"({"reason":"enough"})");
  CHECK(got.status == 200);
  CHECK(json::parse(got.body) == json{{"ok", true}, {"session_id", "sess_known"}, {"closed", true}});
  CHECK(fixture.gateway.close_reason == "enough");
  CHECK(client.get("/sessions/sess_known/move", "POST").status == 200);
  CHECK(is_error(client.get("/sessions/sess_other/move", "POST"), 404, "not_found"));
  CHECK(close("sess_known", "").status == 200);
  CHECK(fixture.gateway.close_reason.empty());
  CHECK(close("sess_known", R"({"reason":null})").status == 200);
  CHECK(is_error(close("sess_other", "{}"), 404, "not_found"));
  CHECK(is_error(close("sess_known", "[]"), 400, "invalid_payload"));
  CHECK(is_error(close("sess_known", "{"), 400, "invalid_payload"));
  CHECK(is_error(close("sess_known", R"({"reason":1})"), 400, "invalid_payload"));
  CHECK(client.get("/sessions/sess_known/close").header("Allow") == "POST, OPTIONS");
}

TEST_CASE("unknown paths and wrong methods are told in JSON, and the connection goes on") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  CHECK(is_error(client.get("/nothing"), 404, "not_found"));
  CHECK(is_error(client.get("/health", "POST", "", "{}"), 405, "method_not_allowed"));
  CHECK(client.get("/health", "DELETE").header("Allow") == "GET, HEAD, OPTIONS");
  const auto asked = client.get("/health", "OPTIONS");
  CHECK(asked.status == 204);
  CHECK(asked.header("Allow") == "GET, HEAD, OPTIONS");
  CHECK(asked.header("Content-Length").empty());
  CHECK(client.get("/health", "HEAD").status == 200);
  CHECK(client.get("*", "OPTIONS").header("Allow") == "GET, HEAD, DELETE, POST, PUT, OPTIONS");
  CHECK(is_error(client.get("/nothing", "OPTIONS"), 404, "not_found"));
  CHECK(client.get("/nothing").header("X-Content-Type-Options") == "nosniff");
  CHECK(is_error(client.get("/v1/realtime?mode=chat"), 426, "upgrade_required"));
  CHECK(client.get("/v1/realtime").header("Upgrade") == "websocket");
  CHECK(is_error(client.get("/v1/realtime", "POST", "", "{}"), 405, "method_not_allowed"));
  CHECK(client.get("/health?x=y#z").status == 200);
}
