#include "base/escaped.hpp"

#include <catch2/catch.hpp>

#include <string>

using parley::base::escaped;

TEST_CASE("words stay as they are") {
  for (const std::string text : {"", "a \"quoted\" word\\n", "Grüße, 你好, 😀", "\u00A0~"}) CHECK(escaped(text) == text);
}

TEST_CASE("what would move a terminal or begin a line becomes an escape") {
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
