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
