#include "net/routes/router.hpp"

#include <catch2/catch.hpp>

#include <optional>

using namespace parley::net;

namespace {

router table() {
  router routes;
  routes.add("GET", "/a", [](auto&, auto&, auto respond) { respond({200, "a"}); });
  routes.add("POST", "/a", [](auto&, auto&, auto respond) { respond({200, "posted"}); });
  routes.add("POST", "/sessions/{}/close", [](auto&, auto& in, auto respond) { respond({200, in[0]}); });
  routes.add("GET", "/sessions/{}/frames/{}", [](auto&, auto& in, auto respond) {
    respond({200, in[0] + " " + in[1]});
  });
  return routes;
}

http_reply ask(const std::string& method, const std::string& path) {
  http_request request;
  request.method = method;
  request.path = path;
  std::optional<http_reply> got;
  table().route(request, [&](http_reply reply) { got = std::move(reply); });
  REQUIRE(got);
  return *got;
}

} // namespace

TEST_CASE("method and path choose the handler") {
  CHECK(ask("GET", "/a").body == "a");
  CHECK(ask("HEAD", "/a").body == "a");
  CHECK(ask("POST", "/a").body == "posted");
  CHECK(ask("POST", "/sessions/sess_1/close").body == "sess_1");
  CHECK(ask("POST", "/sessions/a%2Fb/close").body == "a/b");
  CHECK(ask("GET", "/sessions/a/frames/b%20c").body == "a b c");
}

TEST_CASE("an unknown path is 404") {
  const std::string path = GENERATE("/", "", "/b", "/a/", "/sessions//close", "/sessions/close", "/sessions/a/b/close",
                                    "/sessions/a/frames", "/sessions/a/close/", "/sessions/a");
  const http_reply got = ask("POST", path);
  CHECK(got.status == 404);
  CHECK(got.body.text().find(R"({"error":{"code":"not_found","message":)") == 0);
}

TEST_CASE("a known path with another method is 405 and tells the methods") {
  CHECK(ask("DELETE", "/a").status == 405);
  CHECK(ask("DELETE", "/a").allow == "GET, HEAD, POST, OPTIONS");
  CHECK(ask("GET", "/sessions/x/close").allow == "POST, OPTIONS");
  CHECK(ask("GET", "*").status == 404);
}

TEST_CASE("OPTIONS tells the methods of a path, and of all") {
  CHECK(ask("OPTIONS", "/a").status == 204);
  CHECK(ask("OPTIONS", "/a").allow == "GET, HEAD, POST, OPTIONS");
  CHECK(ask("OPTIONS", "/sessions/x/close").allow == "POST, OPTIONS");
  CHECK(ask("OPTIONS", "*").allow == "GET, HEAD, POST, OPTIONS");
  CHECK(ask("OPTIONS", "/b").status == 404);
}
