#include "net/routes/page.hpp"

#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace parley::net;

namespace {

const page_file* find(std::string_view path) {
  const auto files = page_files();
  const auto at = std::ranges::find(files, path, &page_file::path);
  return at == files.end() ? nullptr : &*at;
}

} // namespace

TEST_CASE("the table holds the page") {
  REQUIRE(find("/"));
  CHECK(find("/")->body.starts_with("<!doctype html>"));
  CHECK(find("/index.html") == nullptr);
  std::set<std::string_view> paths;
  for (const page_file& file : page_files()) {
    INFO(file.path);
    CHECK(paths.insert(file.path).second);
    CHECK_FALSE(file.body.empty());
    CHECK(file.etag.size() == 34);
    CHECK((file.etag.front() == '"' && file.etag.back() == '"'));
  }
}

TEST_CASE("every file is served as what it is") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  for (const page_file& file : page_files()) {
    INFO(file.path);
    const auto got = client.get(file.path);
    CHECK(got.status == 200);
    CHECK(got.body == file.body);
    CHECK(got.header("Content-Type") == file.type);
    CHECK(got.header("ETag") == file.etag);
    CHECK(got.header("Cache-Control") == "no-cache");
    CHECK(got.header("X-Content-Type-Options") == "nosniff");
  }
  CHECK(client.get("/").header("Content-Type") == "text/html; charset=utf-8");
  CHECK(client.get("/app.js").header("Content-Type") == "text/javascript; charset=utf-8");
  CHECK(client.get("/style.css").header("Content-Type") == "text/css; charset=utf-8");
  CHECK(client.get("/icon.png").header("Content-Type") == "image/png");
}

TEST_CASE("the page may load and reach nothing but this server") {
  server_fixture fixture;
  const std::string policy = fixture.connect().get("/").header("Content-Security-Policy");
  CHECK(policy.starts_with("default-src 'self';"));
  CHECK(policy.find("frame-ancestors 'none'") != std::string::npos);
  CHECK(policy.find("unsafe") == std::string::npos);
  CHECK(policy.find('*') == std::string::npos);
}

TEST_CASE("a browser that has this version gets no body, and the connection goes on") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  const std::string etag(find("/app.js")->etag);
  for (const std::string& known : {etag, "W/" + etag, "\"other\", " + etag, std::string("*")}) {
    const auto got = client.get("/app.js", "GET", "If-None-Match: " + known + "\r\n");
    CHECK(got.status == 304);
    CHECK(got.body.empty());
    CHECK(got.header("ETag") == etag);
    CHECK(got.header("Content-Length").empty());
  }
  CHECK(client.get("/app.js", "GET", "If-None-Match: \"other\"\r\n").status == 200);
  CHECK(client.get("/health").status == 200);
}

TEST_CASE("HEAD tells of a file without sending it") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  client.send("HEAD /app.js HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto got = client.read_response(true);
  CHECK(got.status == 200);
  CHECK(got.header("Content-Length") == std::to_string(find("/app.js")->body.size()));
  CHECK(client.get("/app.js", "POST").status == 405);
}

TEST_CASE("doubled and trailing slashes are those of proxies, and no other name") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  const std::string path = GENERATE("//app.js", "/app.js/");
  CHECK(client.get(path).status == 200);
}

TEST_CASE("only what is in the table exists") {
  server_fixture fixture;
  wire_client client = fixture.connect();
  const std::string path =
      GENERATE("/index.html", "/web/app.js", "/app", "/./app.js", "/APP.JS", "/%61pp.js", "/../app.js",
               "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc%2fpasswd", "/app.js%00.html",
               "/..\\..\\etc\\passwd", "/net/page.cpp", "/page.cmake");
  INFO(path);
  const auto got = client.get(path);
  CHECK(got.status == 404);
  CHECK(got.header("Content-Type") == "application/json");
}
