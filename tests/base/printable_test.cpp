#include "base/printable.hpp"

#include "base/utf8.hpp"

#include <catch2/catch.hpp>

#include <random>
#include <string>

using namespace parley::base;

TEST_CASE("words of others stay on their line, and move and colour no terminal") {
  CHECK(printable("gateway 1, h\u00E9") == "gateway 1, h\u00E9");
  CHECK(printable("evil\x1b[31m\nFAKE LINE\r\t\x7f") == "evil\uFFFD[31m\uFFFDFAKE LINE\uFFFD\uFFFD\uFFFD");
  CHECK(printable("\u0085\u009B") == "\uFFFD\uFFFD");
  CHECK(printable("a\u2028b\u202Ec\u2066") == "a\uFFFDb\uFFFDc\uFFFD");
  CHECK(printable("\xff\xc3") == "\uFFFD\uFFFD");
  CHECK(printable(std::string(1000, 'x')).size() == 256);
  CHECK(printable(std::string(1000, '\n'), 10) == "\uFFFD\uFFFD\uFFFD");
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string any;
    for (auto length = random() % 400; length > 0; --length) any += static_cast<char>(random());
    const auto shown = printable(any);
    CHECK(utf8::valid(shown));
    CHECK(shown.size() <= 256);
    CHECK(shown.find_first_of("\n\r\x1b") == std::string::npos);
    CHECK(printable(shown) == shown);
  }
}

TEST_CASE("words are written down as they are") {
  for (const std::string text : {"", "a \"quoted\" word\\n", "Grüße, 你好, 😀", "\u00A0~"}) CHECK(escaped(text) == text);
}

TEST_CASE("what would move a terminal or begin a line is written as an escape") {
  CHECK(escaped("one\nINFO two\r\n\tthree") == "one\\nINFO two\\x0d\\n\\tthree");
  CHECK(escaped("\x1B[31mred\x1B]0;title\x07") == "\\x1b[31mred\\x1b]0;title\\x07");
  CHECK(escaped(std::string("a\0b\x7F", 4)) == "a\\x00b\\x7f");
  CHECK(escaped("\u009B31m") == "\\xc2\\x9b31m"); // the one-character form of ESC [
  CHECK(escaped("\x9B"
                "31m") == "\\x9b31m"); // and its byte in other encodings
  CHECK(escaped("cut \xE4\xBD") == "cut \\xe4\\xbd");
  CHECK(escaped("\xED\xA0\x80") == "\\xed\\xa0\\x80");
  CHECK(escaped("x\u202Etxt.exe\u2028y") == "x\\u202etxt.exe\\u2028y");
}
