#include "net/routes/page.hpp"
#include "net/routes/routes.hpp"
#include "tests/net/server_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <set>

using namespace parley::net;
using parley::tests::temporary_folder;

namespace {

/// The kinds of callers. All connect from this machine, as a browser or a proxy on it does on behalf of somebody else.
struct caller {
  std::string_view name;
  std::string host = "Host: localhost:8006\r\n";
  std::string more{};
};

const caller machine{"the machine itself"};
const caller own_page{"its own page", "Host: 127.0.0.1:8006\r\n", "Origin: http://127.0.0.1:8006\r\n"};
const caller proxy{"a proxy", "Host: localhost:8006\r\n", "X-Forwarded-For: 192.0.2.1\r\n"};
const caller standard_proxy{"a proxy of RFC 7239", "Host: localhost:8006\r\n", "Forwarded: for=192.0.2.1\r\n"};
const caller rebound{"a rebound name", "Host: evil.example:8006\r\n"};
const caller rebound_page{"a page of a rebound name", "Host: evil.example:8006\r\n",
                          "Origin: http://evil.example:8006\r\n"};
const caller dressed_page{"a page of a name like an address", "Host: localhost:8006\r\n",
                          "Origin: http://127.evil.example\r\n"};
const caller two_hosts{"one with two hosts", "Host: localhost:8006\r\nHost: evil.example\r\n"};
const caller no_host{"one without a host", ""};
const caller key{"a key", "Host: parley.example\r\n", "Authorization: Bearer alpha\r\n"};
const caller key_page{"a page with a key", "Host: parley.example\r\n",
                      "Origin: https://parley.example\r\nAuthorization: Bearer alpha\r\n"};
const caller admin{"an admin's key", "Host: parley.example\r\n", "Authorization: Bearer beta\r\n"};
const caller wrong_key{"a wrong key", "Host: parley.example\r\n", "Authorization: Bearer gamma\r\n"};

enum class needs { nothing, watching, session, everything, own_rules };

struct route_rule {
  std::string_view method;
  std::string_view pattern;
  std::string target;
  needs what;
  int answered; ///< status for callers with the permission
};

const std::vector<route_rule> rules{
    {"GET", "/health", "/health", needs::nothing, 200},
    {"GET", "/ready", "/ready", needs::nothing, 200},
    {"GET", "/api/default_ref_audio", "/api/default_ref_audio", needs::nothing, 404},
    {"GET", "/v1/models", "/v1/models", needs::nothing, 200},
    {"GET", "/v1/models/{}", "/v1/models/default", needs::nothing, 200},
    {"GET", "/v1/models/{}/{}", "/v1/models/a/b", needs::nothing, 404},
    {"GET", "/workers", "/workers", needs::watching, 200},
    {"GET", "/api/queue", "/api/queue", needs::watching, 200},
    {"GET", "/ws/chat", "/ws/chat", needs::nothing, 410},
    {"GET", "/ws/half_duplex/{}", "/ws/half_duplex/a", needs::nothing, 410},
    {"GET", "/ws/duplex/{}", "/ws/duplex/a", needs::nothing, 410},
    {"POST", "/api/chat", "/api/chat", needs::nothing, 410},
    {"POST", "/api/streaming/stop", "/api/streaming/stop", needs::nothing, 410},
    {"GET", "/api/queue/{}", "/api/queue/a", needs::nothing, 410},
    {"DELETE", "/api/queue/{}", "/api/queue/a", needs::nothing, 410},
    {"GET", "/api/sessions/{}", "/api/sessions/a", needs::nothing, 410},
    {"GET", "/api/sessions/{}/recording", "/api/sessions/a/recording", needs::nothing, 410},
    {"GET", "/api/sessions/{}/assets/{}", "/api/sessions/a/assets/b", needs::nothing, 410},
    {"GET", "/api/sessions/{}/assets/{}/{}", "/api/sessions/a/assets/b/c", needs::nothing, 410},
    {"GET", "/api/sessions/{}/download", "/api/sessions/a/download", needs::nothing, 410},
    {"GET", "/api/sessions/{}/comment", "/api/sessions/a/comment", needs::nothing, 410},
    {"POST", "/api/sessions/{}/comment", "/api/sessions/a/comment", needs::nothing, 410},
    {"POST", "/api/sessions/{}/upload-recording", "/api/sessions/a/upload-recording", needs::nothing, 410},
    {"GET", "/s/{}", "/s/a", needs::nothing, 410},
    {"GET", "/api/assets/ref_audio", "/api/assets/ref_audio", needs::nothing, 410},
    {"POST", "/api/assets/ref_audio", "/api/assets/ref_audio", needs::nothing, 410},
    {"DELETE", "/api/assets/ref_audio/{}", "/api/assets/ref_audio/a", needs::nothing, 410},
    {"GET", "/api/config/eta", "/api/config/eta", needs::nothing, 410},
    {"PUT", "/api/config/eta", "/api/config/eta", needs::nothing, 410},
    {"GET", "/api/apps", "/api/apps", needs::nothing, 410},
    {"GET", "/api/admin/apps", "/api/admin/apps", needs::nothing, 410},
    {"PUT", "/api/admin/apps/{}", "/api/admin/apps/a", needs::nothing, 410},
    {"GET", "/status", "/status", needs::watching, 200},
    {"GET", "/metrics", "/metrics", needs::watching, 200},
    {"GET", "/sessions", "/sessions", needs::session, 200},
    {"GET", "/sessions/{}/input.wav", "/sessions/a/input.wav", needs::session, 404},
    {"GET", "/sessions/{}/output.wav", "/sessions/a/output.wav", needs::session, 404},
    {"GET", "/sessions/{}/events.jsonl", "/sessions/a/events.jsonl", needs::session, 404},
    {"GET", "/sessions/{}/meta.json", "/sessions/a/meta.json", needs::session, 404},
    {"GET", "/sessions/{}/frames/{}", "/sessions/a/frames/1.jpg", needs::session, 404},
    {"DELETE", "/sessions/{}", "/sessions/a", needs::session, 404},
    {"POST", "/sessions/{}/close", "/sessions/sess_known/close", needs::session, 200},
    {"POST", "/sessions/{}/move", "/sessions/sess_known/move", needs::everything, 200},
    {"POST", "/workers/{}/drain", "/workers/1/drain", needs::everything, 200},
    {"POST", "/workers/{}/resume", "/workers/1/resume", needs::everything, 200},
    // Starts a session, so access_control::let_in decides; tested below.
    {"POST", "/v1/chat/completions", "", needs::own_rules, 0},
    {"GET", "/v1/realtime", "", needs::own_rules, 0},
    {"GET", "/v1/live", "", needs::own_rules, 0},
    {"GET", "/v1/live/sessions", "", needs::own_rules, 0},
};

wire_client::response ask(server_fixture& fixture, const caller& who, std::string_view method, std::string_view target,
                          std::string_view more = {}) {
  wire_client client = fixture.connect();
  client.send(std::string(method) + " " + std::string(target) + " HTTP/1.1\r\n" + who.host + who.more +
              std::string(more) + "\r\n");
  return client.read_response();
}

/// Asks for a session in two dialects, which must be answered alike.
wire_client::response ask_for_session(server_fixture& fixture, const caller& who) {
  const auto upgrade = [&](std::string_view target) {
    return ask(fixture, who, "GET", target,
               "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
  };
  auto own = upgrade("/v1/realtime?mode=chat");
  CHECK(upgrade("/v1/live/sessions").status == own.status);
  return own;
}

wire_client::response ask_for_completion(server_fixture& fixture, const caller& who) {
  return ask(fixture, who, "POST", "/v1/chat/completions", "Content-Length: 2\r\n\r\n{}");
}

/// A server that requires a key: "alpha" is ann's, "beta" the admin's. The known session is ann's.
struct keyed_fixture : server_fixture {
  keyed_fixture() {
    options.keys_file =
        folder.write("keys", "ann 8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8\n"
                             "bob f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753 admin\n");
    gateway.known_key = "ann";
  }
  temporary_folder folder;
};

/// Requests every route as `who` and compares the answers with what `who` may do. A foreign page may change nothing.
void check_routes(server_fixture& fixture, const caller& who, const std::set<needs>& may, int otherwise,
                  int otherwise_changing, bool foreign_page = false) {
  for (const route_rule& each : rules) {
    if (each.what == needs::own_rules) continue;
    INFO(who.name << ": " << each.method << " " << each.target);
    const bool open = each.what == needs::nothing && (each.method == "GET" || !foreign_page);
    const bool allowed = open || may.contains(each.what);
    const int refused = each.method == "GET" ? otherwise : otherwise_changing;
    CHECK(ask(fixture, who, each.method, each.target).status == (allowed ? each.answered : refused));
  }
}

} // namespace

TEST_CASE("the table of permissions has every route") {
  echo_gateway gateway;
  meters counted;
  std::set<std::string> listed;
  for (std::string& each : make_routes({gateway, {}, "m", counted, [] { return 0; }}).listed()) listed.insert(each);
  for (const page_file& file : page_files()) listed.erase("GET " + std::string(file.path));
  std::set<std::string> ruled;
  for (const route_rule& each : rules) ruled.insert(std::string(each.method) + " " + std::string(each.pattern));
  CHECK(listed == ruled);
}

TEST_CASE("without keys the machine of the server may do everything, and nobody else more than talk") {
  server_fixture fixture;
  const std::set<needs> all{needs::watching, needs::session, needs::everything};
  check_routes(fixture, machine, all, 0, 0);
  check_routes(fixture, own_page, all, 0, 0);
  for (const caller* who : {&proxy, &standard_proxy, &rebound, &two_hosts, &no_host})
    check_routes(fixture, *who, {}, 403, 403);
  for (const caller* who : {&rebound_page, &dressed_page}) check_routes(fixture, *who, {}, 403, 403, true);
  CHECK(fixture.gateway.draining == false);
  // A client without an Origin is not a page and is allowed.
  for (const caller* who : {&machine, &own_page, &proxy, &rebound}) {
    INFO(who->name);
    CHECK(ask_for_session(fixture, *who).status == 101);
    CHECK(ask_for_completion(fixture, *who).status == 400);
  }
  for (const caller* who : {&rebound_page, &dressed_page}) {
    INFO(who->name);
    CHECK(ask_for_session(fixture, *who).status == 403);
    CHECK(ask_for_completion(fixture, *who).status == 403);
  }
}

TEST_CASE("a name of the server that the settings have is as good as its address for a page that talks") {
  server_fixture fixture;
  fixture.options.names = "parley.example evil.example";
  CHECK(ask_for_session(fixture, rebound_page).status == 101);
  check_routes(fixture, rebound_page, {}, 403, 403);
}

TEST_CASE("with keys each route asks for the right one") {
  keyed_fixture fixture;
  check_routes(fixture, key, {needs::watching, needs::session}, 403, 403);
  check_routes(fixture, key_page, {needs::watching, needs::session}, 403, 403);
  check_routes(fixture, admin, {needs::watching, needs::session, needs::everything}, 0, 0);
  check_routes(fixture, machine, {needs::watching}, 401, 401);
  check_routes(fixture, own_page, {needs::watching}, 401, 401);
  for (const caller* who : {&proxy, &standard_proxy, &rebound, &rebound_page, &two_hosts, &no_host, &wrong_key})
    check_routes(fixture, *who, {}, 401, 401);
  check_routes(fixture, dressed_page, {}, 401, 403, true);
  for (const caller* who : {&key, &key_page, &admin}) {
    INFO(who->name);
    CHECK(ask_for_session(fixture, *who).status == 101);
    CHECK(ask_for_completion(fixture, *who).status == 400);
  }
  for (const caller* who : {&machine, &proxy, &rebound_page, &wrong_key}) {
    INFO(who->name);
    CHECK(ask_for_session(fixture, *who).status == 401);
    CHECK(ask_for_completion(fixture, *who).status == 401);
  }
}
