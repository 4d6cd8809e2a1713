#include "client/printable.hpp"

#include <catch2/catch.hpp>

using namespace parley::client;

TEST_CASE("text without control characters is shown as it is") {
  CHECK(printable("Grüße, 你好 😀\n\tend") == "Grüße, 你好 😀\n\tend");
  CHECK(printable("") == "");
}

TEST_CASE("nothing a server says can steer the terminal") {
  CHECK(printable("a\x1b[2Jb") == "a\uFFFD[2Jb");
  CHECK(printable(std::string("\0\r\x7f", 3)) == "\uFFFD\uFFFD\uFFFD");
  CHECK(printable("\xC2\x9B"
                  "31m") == "\uFFFD31m");
  CHECK(printable("\xC2\xA0") == "\xC2\xA0");
  CHECK(printable("\xC2") == "\xC2");
}

TEST_CASE("one line stays one line") {
  CHECK(printable_line("a\nb\tc\r") == "a b c\uFFFD");
}
