#include "net/text.hpp"

#include <catch2/catch.hpp>

using namespace parley::net;

TEST_CASE("words of a list, whatever lies between them") {
  std::string_view list = "  same   https://a.example b ";
  CHECK(take_word(list) == "same");
  CHECK(take_word(list) == "https://a.example");
  CHECK(take_word(list) == "b");
  CHECK_FALSE(take_word(list));
  list = "";
  CHECK_FALSE(take_word(list));
}

TEST_CASE("lower case is ASCII's alone") {
  CHECK(lower("LocalHOST-\xC3\x84") == "localhost-\xC3\x84");
}

TEST_CASE("what strangers send is one short line in the log") {
  CHECK(for_log("https://evil.example") == "https://evil.example");
  CHECK(for_log("a\x1B[31m\nb\xC2\x85") == "a?[31m?b??");
  CHECK(for_log(std::string(5000, 'x')) == std::string(200, 'x') + "...");
}
