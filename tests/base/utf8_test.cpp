#include "base/utf8.hpp"

#include <catch2/catch.hpp>

using namespace parley::base;

TEST_CASE("bytes become well-formed text, one replacement for each maximal subpart") {
  const std::string r(utf8::replacement);
  CHECK(utf8::lossy("") == "");
  CHECK(utf8::lossy("a\xFF"
                    "b") == "a" + r + "b");
  CHECK(utf8::lossy("\xE4\xBD") == r);
  CHECK(utf8::lossy("\xF0\x9F\x98x") == r + "x");
  CHECK(utf8::lossy("\xED\xA0\x80") == r + r + r); // a surrogate
  CHECK(utf8::lossy("\xC0\xAF") == r + r);
  CHECK(utf8::lossy("\xF4\x90\x80\x80") == r + r + r + r);
  CHECK(utf8::lossy("h\xC3\xA9 \xE4\xBD\xA0 \xF0\x9F\x98\x80") == "h\xC3\xA9 \xE4\xBD\xA0 \xF0\x9F\x98\x80");
}

TEST_CASE("every Unicode scalar value is written as it is read, and nothing else is valid") {
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (code == 0xD800) code = 0xE000; // skip the surrogates
    std::string text;
    utf8::append(code, text);
    const auto read = utf8::decode(text);
    if (!read.valid || read.code != code || read.size != text.size() || utf8::sequence_length(text) != text.size() ||
        !utf8::valid(text))
      FAIL("U+" << std::hex << static_cast<std::uint32_t>(code));
  }
  // Every sequence of up to three bytes is either written by `append` or invalid.
  for (unsigned bytes = 0x80; bytes < 0x1000000; bytes += bytes < 0x10000 ? 1 : 7) {
    std::string text;
    for (unsigned left = bytes; left != 0; left >>= 8) text.insert(text.begin(), static_cast<char>(left & 0xFF));
    const auto read = utf8::decode(text);
    if (read.valid) {
      std::string again;
      utf8::append(read.code, again);
      if (again != text.substr(0, read.size)) FAIL(std::hex << bytes);
    } else if (utf8::valid(text) || utf8::sequence_length(text) != 0 || utf8::lossy(text).size() < 3) {
      FAIL(std::hex << bytes);
    }
  }
}

TEST_CASE("text is cut between code points") {
  const std::string text = "a\xC3\xA9\xF0\x9F\x98\x80";
  CHECK(utf8::truncate(text, 10) == text);
  CHECK(utf8::truncate(text, 6) == "a\xC3\xA9");
  CHECK(utf8::truncate(text, 3) == "a\xC3\xA9");
  CHECK(utf8::truncate(text, 2) == "a");
  CHECK(utf8::truncate(text, 0) == "");
  CHECK(utf8::valid(text));
  CHECK_FALSE(utf8::valid(std::string_view(text).substr(0, 2)));
  CHECK_FALSE(utf8::valid("12345678\xFF"));
  CHECK(utf8::sequence_length("") == 0);
}
