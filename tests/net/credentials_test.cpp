#include "net/access/origin.hpp"

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
  const server_names names("127.0.0.1", "parley.example");
  const auto same = [&](std::string_view origin, std::string_view host) {
    return origin_allowed("same", origin, host, &names);
  };
  CHECK(same("", "parley.example"));
  CHECK(same("", "evil.example"));
  CHECK(same("https://parley.example", "parley.example"));
  CHECK(same("https://PARLEY.example:8443", "parley.example:8006"));
  CHECK(same("http://localhost:3000", "127.0.0.1:8006"));
  CHECK(same("http://[::1]:3000", "localhost:8006"));
  CHECK(same("http://[::ffff:127.0.0.1]", "localhost:8006"));
  CHECK(same("http://[2001:db8::1]", "[2001:DB8:0::1]:8006"));
  CHECK(same("http://192.0.2.7", "192.0.2.7:8006"));
  CHECK_FALSE(same("https://evil.example", "parley.example"));
  CHECK_FALSE(same("https://parley.example.evil.example", "parley.example"));
  CHECK_FALSE(same("https://evil.example", "127.0.0.1:8006"));
  CHECK_FALSE(same("http://127.evil.example", "127.0.0.1:8006"));
  CHECK_FALSE(same("http://localhost.evil.example", "localhost"));
  CHECK_FALSE(same("http://x.localhost", "localhost"));
  CHECK_FALSE(same("http://localhost@evil.example", "localhost"));
  CHECK_FALSE(same("null", "parley.example"));
  CHECK_FALSE(same("null", "localhost"));
  CHECK_FALSE(same("chrome-extension://localhost", "localhost"));
  CHECK_FALSE(same("https://parley.example", ""));
}

TEST_CASE("a name that was made to lead here is not ours, unless a key is asked") {
  const server_names names("127.0.0.1", "parley.example");
  CHECK_FALSE(origin_allowed("same", "http://evil.example:8006", "evil.example:8006", &names));
  CHECK_FALSE(origin_allowed("same", "http://127.evil.example", "127.evil.example", &names));
  CHECK(origin_allowed("same", "http://other.example:8006", "other.example:8006", nullptr));
  CHECK_FALSE(origin_allowed("same", "http://evil.example", "other.example", nullptr));
}

TEST_CASE("an allow-list lets in what it names") {
  const server_names names("127.0.0.1", "parley.example");
  const auto allowed = [&](std::string_view list, std::string_view origin) {
    return origin_allowed(list, origin, "parley.example", &names);
  };
  const std::string_view list = "same  https://app.example  https://other.example:8443 chrome-extension://abc";
  CHECK(allowed(list, "https://app.example"));
  CHECK(allowed(list, "https://APP.example:443"));
  CHECK(allowed(list, "https://other.example:8443"));
  CHECK(allowed(list, "https://parley.example"));
  CHECK(allowed(list, "chrome-extension://abc"));
  CHECK_FALSE(allowed(list, "http://app.example"));
  CHECK_FALSE(allowed(list, "https://app.example:8443"));
  CHECK_FALSE(allowed(list, "https://other.example"));
  CHECK_FALSE(allowed("", "https://parley.example"));
  CHECK_FALSE(allowed("null", "null"));
  CHECK(allowed("*", "null"));
}
