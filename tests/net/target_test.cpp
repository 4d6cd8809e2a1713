#include "net/target.hpp"

#include <catch2/catch.hpp>

using namespace parley::net;

TEST_CASE("a target splits into path and query") {
  CHECK(split_target("/v1/realtime?mode=chat").path == "/v1/realtime");
  CHECK(split_target("/v1/realtime?mode=chat").query == "mode=chat");
  CHECK(split_target("/a?b?c").query == "b?c");
  CHECK(split_target("/a").query.empty());
  CHECK(split_target("/a?x#y").query == "x");
  CHECK(split_target("").path.empty());
}

TEST_CASE("the last value of a key wins and is percent-decoded") {
  CHECK(query_value("mode=chat", "mode") == "chat");
  CHECK(query_value("mode=chat&x=1&mode=audio", "mode") == "audio");
  CHECK(query_value("mode=%61ud%69o", "mode") == "audio");
  CHECK(query_value("m%6Fde=audio", "mode") == "audio");
  CHECK(query_value("mode=", "mode") == "");
  CHECK(query_value("mode", "mode") == "");
  CHECK(query_value("mode=a=b", "mode") == "a=b");
  CHECK_FALSE(query_value("", "mode"));
  CHECK_FALSE(query_value("amode=chat&modes=x", "mode"));
  CHECK(query_value("&&mode=chat&", "mode") == "chat");
}

TEST_CASE("what is no escape stays as it is") {
  CHECK(percent_decode("100%") == "100%");
  CHECK(percent_decode("%4") == "%4");
  CHECK(percent_decode("%zz%-1%+1") == "%zz%-1%+1");
  CHECK(percent_decode("%00") == std::string(1, '\0'));
  CHECK(percent_decode("a+b") == "a+b");
}

TEST_CASE("doubled and trailing slashes are taken out of a path, and of nothing else") {
  CHECK(tidy_target("/v1//models") == "/v1/models");
  CHECK(tidy_target("//v1/models/") == "/v1/models");
  CHECK(tidy_target("/v1/realtime/?mode=audio&x=a//b/") == "/v1/realtime?mode=audio&x=a//b/");
  CHECK(tidy_target("///") == "/");
  for (const char* tidy : {"/", "/v1/models", "/a?b=//", "/a#//", "*", "", "http://host//a/"})
    CHECK_FALSE(tidy_target(tidy));
}
