#include "protocol/media/picture.hpp"

#include "tests/protocol/wire_material.hpp"

#include <catch2/catch.hpp>

using namespace parley::protocol;
namespace test = parley::protocol::test;

namespace {

std::string refusal(std::string_view base64_text) {
  auto decoded = decode_image(base64_text, "f");
  return decoded ? "decoded" : decoded.error().message;
}

} // namespace

TEST_CASE("picture: a JPEG file's size is read from its frame header") {
  auto size = read_jpeg_size(test::jpeg_file(640, 480));
  REQUIRE(size);
  CHECK(size->width == 640);
  CHECK(size->height == 480);
  auto progressive = test::jpeg_file(1, 4096);
  progressive[progressive.find("\xFF\xC0") + 1] = '\xC2';
  size = read_jpeg_size(progressive);
  REQUIRE(size);
  CHECK(size->width == 1);
  CHECK(size->height == 4096);
}

TEST_CASE("picture: fill bytes, restart markers and other tables before the frame header are passed over") {
  auto file = test::jpeg_file(30, 40);
  auto frame = file.substr(file.find("\xFF\xC0"));
  for (std::string before : {std::string("\xFF\xFF\xFF"), std::string("\xFF\x01"), std::string("\xFF\xD0"),
                             std::string("\xFF\xC4\x00\x04??", 6), std::string("\xFF\xE1\x00\x02", 4)}) {
    auto size = read_jpeg_size("\xFF\xD8\xFF\xE0" + std::string("\x00\x02", 2) + before + frame);
    REQUIRE(size);
    CHECK(size->width == 30);
  }
}

TEST_CASE("picture: files without a readable frame header") {
  auto file = test::jpeg_file(30, 40);
  for (auto size = file.find("\xFF\xC0") + 9; size-- > 0;) CHECK_FALSE(read_jpeg_size(std::string(file, 0, size)));
  CHECK_FALSE(read_jpeg_size("\xFF\xD8\xFF\xDA" + std::string("\x00\x02", 2) + file.substr(2))); // scan before frame
  CHECK_FALSE(read_jpeg_size("\xFF\xD8\xFF\xE0" + std::string("\x00\x01", 2) + file.substr(2))); // length below 2
  CHECK_FALSE(read_jpeg_size("\xFF\xD8\xFF\xE0" + std::string("\x00\x02", 2) + "x" + file.substr(2))); // no marker
  CHECK_FALSE(read_jpeg_size("\xFF\xD8\xFF\xE0" + std::string("\x00\x02", 2) + "\xFF\xD9" +
                             file.substr(20))); // ends before the frame header
  CHECK_FALSE(read_jpeg_size("\x89PNG\r\n\x1a\n"));
}

TEST_CASE("picture: in chat a PNG or a WebP file is taken too") {
  const std::string png = "\x89PNG\r\n\x1a\n and more", webp = "RIFF....WEBP and more";
  for (const auto& file : {png, webp}) {
    auto decoded = decode_image(test::to_base64(file), "f", picture_kinds::jpeg_png_webp);
    REQUIRE(decoded);
    CHECK(**decoded == file);
    CHECK(refusal(test::to_base64(file)) != "decoded");
  }
  CHECK_FALSE(decode_image(test::to_base64("RIFF....WAVE"), "f", picture_kinds::jpeg_png_webp));
  CHECK_FALSE(decode_image(test::to_base64("GIF89a"), "f", picture_kinds::jpeg_png_webp));
  CHECK(decode_image(test::jpeg(), "f", picture_kinds::jpeg_png_webp));
}

TEST_CASE("picture: what clients may send") {
  auto file = test::jpeg_file(4096, 4096, max_image_bytes);
  auto decoded = decode_image(test::to_base64(file), "f");
  REQUIRE(decoded);
  CHECK(**decoded == file);
  CHECK(refusal("data:image/jpeg;base64," + test::jpeg()) == "decoded");
  CHECK(refusal("data:image/jpeg;name=a;base64," + test::jpeg()) == "decoded");

  CHECK(refusal(test::to_base64(file + "x")) == "f: 4194305 bytes, at most 4194304 are allowed");
  CHECK(refusal(test::jpeg(4097, 10)) == "f: 4097x10 pixels, outside 1..4096 a side");
  CHECK(refusal(test::jpeg(10, 0)) == "f: 10x0 pixels, outside 1..4096 a side");
  CHECK(refusal("") == "f: not a JPEG file");
  CHECK(refusal(test::to_base64("\x89PNG\r\n\x1a\n")) == "f: a PNG picture, not a JPEG file");
  CHECK(refusal(test::to_base64("no picture at all")) == "f: not a JPEG file");
  CHECK(refusal(test::to_base64("\xFF\xD8\xFF\xE0 not really")) == "f: a JPEG file without a frame header");
  CHECK(refusal("/9j/4A*=") == "f: not base64 at character 6");
  CHECK(refusal("data:image/jpeg,abcd") == "f: not base64 at character 4");
}

TEST_CASE("picture: a video file is named, whatever its size") {
  std::string mp4("\0\0\0\x18"
                  "ftypisom",
                  12);
  mp4.resize(max_image_bytes + 100, 'x');
  for (const auto& file : {mp4, mp4.substr(0, 40), std::string("\x1A\x45\xDF\xA3 and more of it")}) {
    const auto decoded = decode_image(test::to_base64(file), "data", picture_kinds::jpeg_png_webp);
    REQUIRE_FALSE(decoded);
    CHECK(decoded.error().message == "data: a video file; send its frames as JPEG pictures, and its sound beside them");
  }
}

TEST_CASE("picture: a photo of a telephone, a sound and a document are told as what they are") {
  using namespace std::string_literals;
  const auto told = [](const std::string& file) {
    const auto decoded = decode_image(test::to_base64(file), "data", picture_kinds::jpeg_png_webp);
    return decoded ? "decoded" : decoded.error().message;
  };
  const auto box = [](const std::string& brands) { return "\0\0\0\x18"s + "ftyp" + brands + std::string(100, 'x'); };
  CHECK(told(box("heic\0\0\0\0mif1heic"s)) == "data: a HEIC picture; JPEG, PNG and WebP are read");
  CHECK(told(box("mif1\0\0\0\0mif1heic"s)) == "data: a HEIC picture; JPEG, PNG and WebP are read");
  CHECK(told(box("avif\0\0\0\0mif1avif"s)) == "data: an AVIF picture; JPEG, PNG and WebP are read");
  CHECK(told("GIF89a"s) == "data: a GIF picture; JPEG, PNG and WebP are read");
  CHECK(told("RIFF\1\2\3\4WAVEfmt "s) == "data: a WAV file, no picture");
  CHECK(told("%PDF-1.4 and so on"s) == "data: a PDF file, no picture");
  CHECK(told("what is this"s) == "data: neither a JPEG, a PNG nor a WebP file");
  auto large = box("heic\0\0\0\0mif1heic"s);
  large.resize(max_image_bytes + 100, 'x');
  CHECK(told(large) == "data: a HEIC picture; JPEG, PNG and WebP are read");
}

TEST_CASE("picture: base64 may be in lines") {
  const auto text = test::to_base64(test::jpeg_file(640, 480, 1000));
  std::string lines = "data:image/jpeg;base64,";
  for (std::size_t at = 0; at < text.size(); at += 76) lines += text.substr(at, 76) + "\n";
  CHECK(refusal(lines) == "decoded");
}
