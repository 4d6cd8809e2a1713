#include "net/credentials.hpp"

#include <catch2/catch.hpp>

using namespace parley::net;

TEST_CASE("a key comes in one of three places") {
  CHECK(offered_key("Bearer k1", "", "") == "k1");
  CHECK(offered_key("bearer   k1", "", "") == "k1");
  CHECK(offered_key("", "map.realtime, map-api-key.k2", "") == "k2");
  CHECK(offered_key("", "openai-insecure-api-key.k2,", "") == "k2");
  CHECK(offered_key("", "", "mode=chat&api_key=k%203") == "k 3");
  CHECK(offered_key("Bearer k1", "map-api-key.k2", "api_key=k3") == "k1");
  CHECK_FALSE(offered_key("", "realtime", "mode=chat"));
  CHECK_FALSE(offered_key("Basic abc", "", ""));
  CHECK_FALSE(offered_key("Bearer", "", ""));
}

TEST_CASE("pages of the same host may come, whatever their port") {
  const auto same = [](std::string_view origin, std::string_view host) { return origin_allowed("same", origin, host); };
  CHECK(same("", "parley.example"));
  CHECK(same("https://parley.example", "parley.example"));
  CHECK(same("https://PARLEY.example:8443", "parley.example:8006"));
  CHECK(same("http://localhost:3000", "127.0.0.1:8006"));
  CHECK(same("http://[::1]:3000", "localhost:8006"));
  CHECK(same("http://[2001:db8::1]", "[2001:db8::1]:8006"));
  CHECK_FALSE(same("https://evil.example", "parley.example"));
  CHECK_FALSE(same("https://parley.example.evil.example", "parley.example"));
  CHECK_FALSE(same("https://evil.example", "127.0.0.1:8006"));
  CHECK_FALSE(same("http://localhost.evil.example", "localhost"));
  CHECK_FALSE(same("null", "parley.example"));
  CHECK_FALSE(same("https://parley.example", ""));
}

TEST_CASE("an allow-list lets in what it names") {
  const std::string_view list = "same  https://app.example  https://other.example:8443";
  CHECK(origin_allowed(list, "https://app.example", "parley.example"));
  CHECK(origin_allowed(list, "https://other.example:8443", "parley.example"));
  CHECK(origin_allowed(list, "https://parley.example", "parley.example"));
  CHECK_FALSE(origin_allowed(list, "http://app.example", "parley.example"));
  CHECK_FALSE(origin_allowed(list, "https://other.example", "parley.example"));
  CHECK_FALSE(origin_allowed("", "https://parley.example", "parley.example"));
  CHECK(origin_allowed("*", "null", "parley.example"));
}
