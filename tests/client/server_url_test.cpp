#include "client/server_url.hpp"

#include <catch2/catch.hpp>

using parley::client::parse_server_url;

namespace {

std::string shown(std::string_view text) {
  const auto url = parse_server_url(text);
  return url ? (url->secure ? "tls " : "") + url->host + " " + url->port + " " + url->path : "error " + url.error();
}

} // namespace

TEST_CASE("a server is named by http or ws, with or without the endpoint") {
  CHECK(shown("http://localhost:8006") == "localhost 8006 /v1/realtime");
  CHECK(shown("ws://localhost:8006/") == "localhost 8006 /v1/realtime");
  CHECK(shown("ws://localhost:8006/v1/realtime") == "localhost 8006 /v1/realtime");
  CHECK(shown("ws://localhost:8006/v1/realtime/?mode=chat") == "localhost 8006 /v1/realtime");
  CHECK(shown("http://example.org") == "example.org 80 /v1/realtime");
  CHECK(shown("http://example.org/omni") == "example.org 80 /omni/v1/realtime");
  CHECK(shown("https://example.org") == "tls example.org 443 /v1/realtime");
  CHECK(shown("wss://localhost:8006") == "tls localhost 8006 /v1/realtime");
  CHECK(shown("http://[::1]:80") == "::1 80 /v1/realtime");
}

TEST_CASE("the addresses of a cluster share key and certificates") {
  const auto urls = parley::client::parse_server_urls("http://one:1,wss://two", "secret", "ca.pem");
  REQUIRE(urls);
  REQUIRE(urls->size() == 2);
  CHECK(urls->front().host == "one");
  CHECK(urls->back().port == "443");
  CHECK(urls->back().key == "secret");
  CHECK(urls->front().ca_file == "ca.pem");
  CHECK(parley::client::parse_server_urls("http://one,", "", "").error().find("must start with") != std::string::npos);
}

TEST_CASE("what is wrong with a URL is said") {
  CHECK(shown("ftp://x").find("must start with") != std::string::npos);
  CHECK(shown("localhost:8006").find("must start with") != std::string::npos);
  CHECK(shown("").find("must start with") != std::string::npos);
  CHECK(shown("http://").find("no host") != std::string::npos);
  CHECK(shown("http://:80").find("no host") != std::string::npos);
  CHECK(shown("http://host:port").find("port") != std::string::npos);
  CHECK(shown("http://host:").find("port") != std::string::npos);
  CHECK(shown("http://[::1").find("]") != std::string::npos);
}
