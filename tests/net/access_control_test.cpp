#include "net/access/access_control.hpp"

#include "tests/net/server_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>

using namespace parley::net;
using nlohmann::json;
using parley::tests::temporary_folder;

namespace {

/// A server that requires a key: "alpha" is ann's, "beta" is the admin's.
struct keyed_fixture : server_fixture {
  keyed_fixture() {
    options.keys_file =
        folder.write("keys", "ann 8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8\n"
                             "bob f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753 admin\n");
  }
  temporary_folder folder;
};

std::string bearer(const std::string& key) {
  return "Authorization: Bearer " + key + "\r\n";
}

} // namespace

TEST_CASE("without its key a client is not upgraded") {
  keyed_fixture fixture;
  SECTION("none") {
    const auto got = fixture.connect().upgrade();
    CHECK(got.status == 401);
    CHECK(got.header("WWW-Authenticate") == "Bearer");
    CHECK(json::parse(got.body)["error"]["code"] == "unauthorized");
  }
  SECTION("a wrong one, in each place") {
    CHECK(fixture.connect().upgrade("/v1/realtime", bearer("gamma")).status == 401);
    CHECK(fixture.connect().upgrade("/v1/realtime", "api-key: gamma\r\n").status == 401);
    CHECK(fixture.connect().upgrade("/v1/realtime?api_key=gamma").status == 401);
    CHECK(fixture.connect().upgrade("/v1/realtime", "Sec-WebSocket-Protocol: map-api-key.gamma\r\n").status == 401);
  }
  CHECK(fixture.gateway.open() == 0);
}

TEST_CASE("the key may come in each of four places, and its name reaches the gateway") {
  keyed_fixture fixture;
  wire_client client = fixture.connect();
  SECTION("header") {
    CHECK(client.upgrade("/v1/realtime", bearer("alpha")).status == 101);
  }
  SECTION("header of Azure's clients") {
    CHECK(client.upgrade("/v1/realtime", "api-key: alpha\r\n").status == 101);
  }
  SECTION("query") {
    CHECK(client.upgrade("/v1/realtime?mode=chat&api_key=alpha").status == 101);
  }
  SECTION("subprotocol, and the other one is echoed") {
    const auto got = client.upgrade("/v1/realtime", "Sec-WebSocket-Protocol: realtime, map-api-key.alpha\r\n");
    CHECK(got.status == 101);
    CHECK(got.header("Sec-WebSocket-Protocol") == "realtime");
  }
  SECTION("subprotocol of OpenAI's clients") {
    CHECK(client.upgrade("/v1/realtime", "Sec-WebSocket-Protocol: openai-insecure-api-key.alpha\r\n").status == 101);
  }
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 1; }));
  CHECK(fixture.gateway.at(0).info.key == "ann");
}

TEST_CASE("a page of another origin is refused, before anything is admitted") {
  server_fixture fixture;
  const auto upgrade = [&](const std::string& origin) {
    return fixture.connect().upgrade("/v1/realtime", "Origin: " + origin + "\r\n").status;
  };
  SECTION("by default") {
    CHECK(upgrade("https://evil.example") == 403);
    CHECK(fixture.gateway.open() == 0);
    CHECK(fixture.connect().get("/sessions/sess_known/close", "POST", "Origin: https://evil.example\r\n").status ==
          403);
    CHECK(fixture.connect().get("/health", "GET", "Origin: https://evil.example\r\n").status == 200);
  }
  SECTION("by a list") {
    fixture.options.allowed_origins = "https://app.example";
    CHECK(upgrade("https://app.example") == 101);
    CHECK(upgrade("https://evil.example") == 403);
  }
}

TEST_CASE("fifty connections from one address with a limit of ten: forty are refused, and a place comes back") {
  server_fixture fixture;
  fixture.options.admission.sessions_per_address = 10;
  std::vector<wire_client> open;
  int refused = 0;
  for (int i = 0; i < 50; ++i) {
    wire_client client = fixture.connect();
    const auto got = client.upgrade();
    if (got.status == 101) {
      open.push_back(std::move(client));
    } else {
      CHECK(got.status == 429);
      CHECK(json::parse(got.body)["error"]["code"] == "too_many_sessions");
      ++refused;
    }
  }
  CHECK(open.size() == 10);
  CHECK(refused == 40);
  open.pop_back();
  CHECK(fixture.gateway.eventually(
      [](auto& sessions) { return std::ranges::any_of(sessions, [](const auto& each) { return each->gone; }); }));
  // The client's place is returned a moment after its session has ended.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  int status = 429;
  while (status == 429 && std::chrono::steady_clock::now() < deadline) status = fixture.connect().upgrade().status;
  CHECK(status == 101);
}

TEST_CASE("starts are rationed by address") {
  server_fixture fixture;
  fixture.options.admission.starts_per_address = 2;
  CHECK(fixture.connect().upgrade().status == 101);
  CHECK(fixture.connect().upgrade().status == 101);
  CHECK(fixture.connect().upgrade().status == 429);
}

TEST_CASE("without keys the machine of the server may do everything") {
  server_fixture fixture;
  CHECK(fixture.connect().get("/metrics").status == 200);
  CHECK(json::parse(fixture.connect().get("/sessions").body)["sessions"][0]["for"] == "all");
  CHECK(fixture.connect().get("/workers/1/drain", "POST").status == 200);
  CHECK(fixture.gateway.draining == true);
  const auto resumed = fixture.connect().get("/workers/1/resume", "POST");
  CHECK(json::parse(resumed.body) == json{{"ok", true}, {"worker", 1}, {"draining", false}});
  CHECK(fixture.gateway.draining == false);
  CHECK(fixture.connect().get("/workers/2/drain", "POST").status == 404);
  CHECK(fixture.connect().get("/workers/x/drain", "POST").status == 404);
  CHECK(fixture.connect().get("/workers/1/drain").status == 405);
}

TEST_CASE("with keys each may see and close its own sessions, and the admin all") {
  keyed_fixture fixture;
  fixture.gateway.known_key = "ann";
  const auto close = [&](const std::string& headers) {
    return fixture.connect().get("/sessions/sess_known/close", "POST", headers).status;
  };
  CHECK(close("") == 401);
  CHECK(close(bearer("gamma")) == 401);
  CHECK(close(bearer("alpha")) == 200);
  CHECK(close(bearer("beta")) == 200);
  fixture.gateway.known_key = "carl";
  CHECK(close(bearer("alpha")) == 403);
  CHECK(close(bearer("beta")) == 200);
  CHECK(fixture.connect().get("/sessions").status == 401);
  CHECK(json::parse(fixture.connect().get("/sessions", "GET", bearer("alpha")).body)["sessions"][0]["for"] == "ann");
  CHECK(json::parse(fixture.connect().get("/sessions", "GET", bearer("beta")).body)["sessions"][0]["for"] == "all");
  CHECK(fixture.connect().get("/workers/1/drain", "POST").status == 401);
  CHECK(fixture.connect().get("/workers/1/drain", "POST", bearer("alpha")).status == 403);
  CHECK_FALSE(fixture.gateway.draining);
  CHECK(fixture.connect().get("/workers/1/drain", "POST", bearer("beta")).status == 200);
  CHECK(fixture.connect().get("/ready").status == 200);
}

TEST_CASE("with keys only who has one, or the machine of the server, may watch") {
  temporary_folder folder;
  const access_control keyed(
      api_keys::load(folder.write("keys", "ann 8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8\n")),
      "same", {"127.0.0.1", ""}, {});
  credentials from;
  from.host = "localhost:8006";
  from.address = "192.0.2.1";
  CHECK_FALSE(keyed.permissions_of(from).may_watch);
  from.authorization = "Bearer alpha";
  CHECK(keyed.permissions_of(from).may_watch);
  CHECK(keyed.permissions_of(from).who->key == "ann");
  from.authorization = {};
  from.from_loopback = true;
  CHECK(keyed.permissions_of(from).may_watch);
  CHECK_FALSE(keyed.permissions_of(from).who);
  from.host = "evil.example:8006";
  CHECK_FALSE(keyed.permissions_of(from).may_watch);
}

TEST_CASE("a page under a name that was pointed here may open sessions only where keys are asked for") {
  temporary_folder folder;
  const access_control open({}, "same", {"0.0.0.0", "talk.example"}, {});
  const access_control listed({}, "https://app.example", {"0.0.0.0", ""}, {});
  const access_control keyed(
      api_keys::load(folder.write("keys", "ann 8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8\n")),
      "same", {"0.0.0.0", ""}, {});
  const auto may = [](const access_control& server, std::string_view host) {
    credentials from;
    from.host = host;
    return server.permissions_of(from).page_may_open;
  };
  for (const auto* host : {"talk.example", "talk.example:8443", "localhost:1", "192.0.2.7", "[2001:db8::1]:8006"}) {
    INFO(host);
    CHECK(may(open, host));
  }
  for (const auto* host : {"", "evil.example", "a, b", "talk.example.evil"}) {
    INFO(host);
    CHECK_FALSE(may(open, host));
  }
  CHECK(may(keyed, "evil.example"));
  CHECK(may(listed, "app.example"));
  CHECK_FALSE(may(listed, "app.example:8443"));
  CHECK_FALSE(may(listed, "localhost"));
}

TEST_CASE("without keys only the machine of the server may watch and run it, and only when it asks for itself") {
  const access_control open({}, "same https://app.example", {"server.lan", "parley.example"}, {});
  credentials from;
  from.from_loopback = true;
  from.host = "127.0.0.1:8006";
  const auto may = [&] {
    const permissions has = open.permissions_of(from);
    CHECK(has.may_watch == has.who.has_value());
    return has.may_watch && has.who->sees_all;
  };
  CHECK(may());
  for (const char* host : {"localhost", "LOCALHOST:8006", "[::1]:8006", "127.8.8.8", "server.lan"}) {
    from.host = host;
    CHECK(may());
  }
  for (const char* host : {"", "evil.example", "127.evil.example", "localhost.evil", "x.localhost", "parley.example",
                           "192.0.2.7", "0.0.0.0", "localhost@evil", "localhost, evil"}) {
    INFO(host);
    from.host = host;
    CHECK_FALSE(may());
  }
  from.host = "localhost:8006";
  SECTION("somebody else's machine") {
    from.from_loopback = false;
    CHECK_FALSE(may());
  }
  SECTION("through a proxy") {
    from.forwarded = true;
    CHECK_FALSE(may());
  }
  SECTION("for a page: its own, and no other, though it may open sessions") {
    from.origin = "http://127.0.0.1:3000";
    CHECK(may());
    from.origin = "https://app.example";
    CHECK(open.may_come_from(from));
    CHECK_FALSE(may());
  }
}

TEST_CASE("the metrics of the server core and of the network come in one text") {
  server_fixture fixture;
  wire_client session = fixture.open();
  CHECK(fixture.connect().upgrade("/v1/realtime", "Origin: https://evil.example\r\n").status == 403);
  const auto got = fixture.connect().get("/metrics");
  CHECK(got.status == 200);
  CHECK(got.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8");
  for (const char* line : {"parley_core 1\n", "parley_connections ", "parley_outbox_bytes 0\n",
                           "parley_refused_total{reason=\"origin\"} 1\n",
                           "parley_http_requests_total{status=\"403\"} 1\n", "parley_build_info{version=\""})
    CHECK(got.body.find(line) != std::string::npos);
}
