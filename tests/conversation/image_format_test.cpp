#include "conversation/image_format.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace parley::conversation {

TEST_CASE("image files are told apart by their first bytes") {
  CHECK(format_of("\xFF\xD8\xFF\xE0 and so on") == image_format::jpeg);
  CHECK(format_of("\x89PNG\r\n\x1A\n and so on") == image_format::png);
  const std::string webp("RIFF\x10\0\0\0WEBPVP8 ", 16);
  CHECK(format_of(webp) == image_format::webp);
  CHECK(format_of(webp.substr(0, 12)) == image_format::webp);
}

TEST_CASE("what is cut off or something else is no image file") {
  for (const std::string file : {"", "\xFF\xD8", "\x89PNG", "RIFF", "RIFFWEBP", "GIF89a", "hello"})
    CHECK(format_of(file) == image_format::unknown);
  CHECK(format_of(std::string("RIFF\x10\0\0\0WAVEfmt ", 16)) == image_format::unknown);
  CHECK(format_of(std::string("RIFF\x10\0\0\0WEB", 11)) == image_format::unknown);
}

} // namespace parley::conversation
