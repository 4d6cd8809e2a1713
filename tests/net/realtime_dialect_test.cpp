#include "net/http/realtime_dialect.hpp"

#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace parley::net;

TEST_CASE("the upgrade says which dialect a connection speaks") {
  const auto openai = [](std::string_view path, std::string_view query = "", std::string_view subprotocols = "",
                         std::string_view beta = "") {
    return realtime_request_of(path, query, subprotocols, beta).has_value();
  };
  CHECK_FALSE(openai("/v1/realtime"));
  CHECK_FALSE(openai("/v1/realtime", "mode=audio&model=x"));
  CHECK_FALSE(openai("/v1/realtime", "model=x&resume_token=resume_a"));
  CHECK_FALSE(openai("/v1/realtime", "duplex=1&session_id=a"));
  CHECK_FALSE(openai("/v1/realtime", "", "map.realtime, map-api-key.k"));
  CHECK_FALSE(openai("/v1/realtime", "", "openai-insecure-api-key.k")); // our own clients send keys like this as well
  CHECK_FALSE(openai("/v1/realtime", "model=x&dialect=parley"));
  CHECK(openai("/v1/realtime", "model=gpt-realtime"));
  CHECK(openai("/v1/realtime", "model="));
  CHECK(openai("/v1/realtime", "mode=audio&dialect=openai"));
  CHECK(openai("/v1/realtime", "deployment=d"));
  CHECK(openai("/v1/realtime", "", "realtime, openai-insecure-api-key.k"));
  CHECK(openai("/v1/realtime", "", "", "realtime=v1"));
  CHECK(openai("/openai/v1/realtime"));

  CHECK(realtime_request_of("/v1/realtime", "model=a%20b", "", "")->model == "a b");
  CHECK(realtime_request_of("/openai/v1/realtime", "", "", "")->model == "parley");
  CHECK(realtime_request_of("/v1/realtime", "model=x", "", "")->served);
  CHECK_FALSE(realtime_request_of("/v1/realtime", "intent=transcription", "", "")->served);
  CHECK_FALSE(realtime_request_of("/v1/realtime", "call_id=c", "", "")->served);
}

TEST_CASE("older clients of the Realtime API are told by what they ask for") {
  const auto beta = [](std::string_view path, std::string_view query = "", std::string_view subprotocols = "",
                       std::string_view header = "") {
    const auto asked = realtime_request_of(path, query, subprotocols, header);
    return asked && asked->spoken == parley::actors::openai_dialect::realtime_beta;
  };
  CHECK(is_realtime_path("/openai/realtime"));
  CHECK(beta("/openai/realtime", "api-version=2024-10-01-preview&deployment=d"));
  CHECK(beta("/v1/realtime", "model=x", "", "realtime=v1"));
  CHECK(beta("/v1/realtime", "model=x", "realtime, openai-beta.realtime-v1"));
  CHECK(beta("/v1/realtime", "", "openai-beta.realtime-v1"));
  CHECK(beta("/v1/realtime", "deployment=d&api-version=1"));
  CHECK(beta("/v1/realtime", "dialect=openai-beta&mode=chat"));
  CHECK_FALSE(beta("/v1/realtime", "dialect=openai", "", "realtime=v1"));
  CHECK_FALSE(beta("/openai/v1/realtime", "api-version=preview"));
  CHECK_FALSE(beta("/v1/realtime", "model=x"));
  CHECK_FALSE(beta("/v1/realtime", "mode=audio", "", "realtime=v1"));
}

TEST_CASE("the path alone says that a connection speaks the Live API") {
  for (const auto* path : {"/v1/live", "/v1/live/sessions", "/openai/v1/live", "/openai/v1/live/sessions"}) {
    CHECK(is_realtime_path(path));
    const auto asked = realtime_request_of(path, "dialect=parley&mode=chat", "", "");
    REQUIRE(asked);
    CHECK(asked->spoken == parley::actors::openai_dialect::live);
  }
  CHECK_FALSE(is_realtime_path("/v1/live/other"));
  CHECK(realtime_request_of("/v1/realtime", "model=x", "", "")->spoken == parley::actors::openai_dialect::realtime);
}

TEST_CASE("the gateway learns of the dialect, and nothing of it in other connections") {
  server_fixture fixture;
  wire_client own = fixture.open("/v1/realtime?mode=chat&model=x");
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 1; }));
  CHECK_FALSE(fixture.gateway.at(0).info.realtime);
  wire_client theirs = fixture.open("/openai/v1/realtime?model=x");
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 2; }));
  REQUIRE(fixture.gateway.at(1).info.realtime);
  CHECK(fixture.gateway.at(1).info.realtime->model == "x");
}

TEST_CASE("a realtime connection that would not get a slot is refused at the upgrade") {
  server_fixture fixture;
  const auto refused = [&](std::string_view target) {
    wire_client client = fixture.connect();
    return client.upgrade(target);
  };
  SECTION("no worker") {
    fixture.gateway.readiness = {false, "no worker is connected"};
  }
  SECTION("a long wait") {
    fixture.gateway.readiness = {true, "", 20};
  }
  CHECK(refused("/v1/live/sessions").status == 503);
  const auto got = refused("/v1/realtime?model=x");
  CHECK(got.status == 503);
  CHECK(got.header("Retry-After") == "1");
  const auto error = nlohmann::json::parse(got.body)["error"];
  CHECK(error["code"] == "server_busy");
  CHECK(error["type"] == "server_error");
  CHECK(refused("/v1/realtime?mode=chat").status == 101); // waits in the queue
}

TEST_CASE("only a bare URL leaves it to the first event") {
  using parley::net::is_undecided;
  CHECK(is_undecided("/v1/realtime", ""));
  CHECK(is_undecided("/v1/realtime", "session_id=a"));
  CHECK_FALSE(is_undecided("/v1/realtime", "mode=audio"));
  CHECK_FALSE(is_undecided("/v1/realtime", "dialect=parley"));
  CHECK_FALSE(is_undecided("/v1/realtime", "session_id=a&resume_token=b"));
  CHECK_FALSE(is_undecided("/v1/live", ""));
}
