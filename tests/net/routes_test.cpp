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

TEST_CASE("readiness is the house's") {
  server_fixture fixture;
  SECTION("ready") {
    CHECK(fixture.connect().get("/ready").status == 200);
  }
  SECTION("not ready, with the reason as it is") {
    fixture.house.readiness = {false, "the model \"x\" is loading"};
    const auto got = fixture.connect().get("/ready");
    CHECK(is_error(got, 503, "service_unavailable"));
    CHECK(json::parse(got.body)["error"]["message"] == "the model \"x\" is loading");
  }
}

TEST_CASE("status joins the house's object with what the door knows") {
  server_fixture fixture;
  fixture.house.status_json = GENERATE("{}", " { } ", R"({"workers":[{"id":"w"}],"queue":{"length":3}})");
  const auto got = fixture.connect().get("/status");
  CHECK(got.status == 200);
  const json body = json::parse(got.body);
  CHECK(body["version"].is_string());
  CHECK(body["uptime_s"].is_number());
  CHECK(body["connections"] == 1);
  if (fixture.house.status_json.size() > 5) CHECK(body["queue"]["length"] == 3);
}

TEST_CASE("a house that does not answer is a 504, and the connection goes on") {
  connection_limits limits;
  limits.handshake = std::chrono::milliseconds(500);
  server_fixture fixture(limits);
  fixture.house.answers_status = false;
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
      return std::make_shared<const std::vector<float>>(std::vector<float>{0.0f, 0.5f, -1});
    };
    const auto got = fixture.connect().get("/api/default_ref_audio");
    CHECK(got.status == 200);
    CHECK(json::parse(got.body) == json{{"base64", "AAAAAAAAAD8AAIC/"}, {"sample_rate", 16000}});
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

TEST_CASE("a session is closed over HTTP") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  const auto close = [&](std::string_view id, std::string_view body) {
    return client.get("/sessions/" + std::string(id) + "/close", "POST", "", body);
  };
  const auto got = close("sess_known", R"({"reason":"enough"})");
  CHECK(got.status == 200);
  CHECK(json::parse(got.body) == json{{"ok", true}, {"session_id", "sess_known"}, {"closed", true}});
  CHECK(fixture.house.close_reason == "enough");
  CHECK(client.get("/sessions/sess_known/move", "POST").status == 200);
  CHECK(is_error(client.get("/sessions/sess_other/move", "POST"), 404, "not_found"));
  CHECK(close("sess_known", "").status == 200);
  CHECK(fixture.house.close_reason.empty());
  CHECK(close("sess_known", R"({"reason":null})").status == 200);
  CHECK(is_error(close("sess_other", "{}"), 404, "not_found"));
  CHECK(is_error(close("sess_known", "[]"), 400, "invalid_payload"));
  CHECK(is_error(close("sess_known", "{"), 400, "invalid_payload"));
  CHECK(is_error(close("sess_known", R"({"reason":1})"), 400, "invalid_payload"));
  CHECK(client.get("/sessions/sess_known/close").header("Allow") == "POST");
}

TEST_CASE("unknown paths and wrong methods are told in JSON, and the connection goes on") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  CHECK(is_error(client.get("/nothing"), 404, "not_found"));
  CHECK(is_error(client.get("/health", "POST", "", "{}"), 405, "method_not_allowed"));
  CHECK(client.get("/health", "DELETE").header("Allow") == "GET");
  CHECK(is_error(client.get("/v1/realtime?mode=chat"), 426, "upgrade_required"));
  CHECK(client.get("/v1/realtime").header("Upgrade") == "websocket");
  CHECK(is_error(client.get("/v1/realtime", "POST", "", "{}"), 405, "method_not_allowed"));
  CHECK(client.get("/health?x=y#z").status == 200);
}
