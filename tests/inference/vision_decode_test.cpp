#include "inference/vision/decode.hpp"
#include "tests/inference/picture_files.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <iterator>
#include <openssl/evp.h>
#include <png.h>
#include <sys/resource.h>

using namespace parley::inference::testing;
using namespace parley::inference::vision;

namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string sha256(const std::vector<std::uint8_t>& bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  REQUIRE(EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) == 1);
  std::string text;
  for (auto i = 0U; i < size; ++i) {
    text += "0123456789abcdef"[digest[i] / 16];
    text += "0123456789abcdef"[digest[i] % 16];
  }
  return text;
}

picture pixels_of(const std::string& file) {
  auto decoded = decode_picture(file);
  if (!decoded) FAIL(decoded.error());
  return *decoded;
}

std::string objection_to(const std::string& file) {
  auto decoded = decode_picture(file);
  return decoded ? "" : decoded.error();
}

int largest_difference(const picture& a, const picture& b) {
  REQUIRE(a.width == b.width);
  REQUIRE(a.height == b.height);
  int largest = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) largest = std::max(largest, std::abs(a.rgb[i] - b.rgb[i]));
  return largest;
}

long peak_kilobytes() {
  rusage used;
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

} // namespace

TEST_CASE("files are read as the reference's library reads them") {
  const auto recorded = nlohmann::json::parse(read_file("tests/data/pictures/pictures.json"));
  CHECK(recorded.size() > 10);
  for (const auto& [name, expected] : recorded.items()) {
    INFO(name);
    auto p = pixels_of(read_file("tests/data/pictures/" + name));
    CHECK(p.width == expected.at("width").get<int>());
    CHECK(p.height == expected.at("height").get<int>());
    CHECK(sha256(p.rgb) == expected.at("sha256_rgb").get<std::string>());
  }
}

TEST_CASE("every kind of JPEG gives its picture") {
  const auto colours = gradient(93, 61), grey = gradient(93, 61, false);
  jpeg_options how;
  CHECK(largest_difference(pixels_of(jpeg_file(colours, how)), colours) < 12);
  auto plain = pixels_of(jpeg_file(colours, how));
  how.orientation = 6; // ignored, as in the reference
  CHECK(pixels_of(jpeg_file(colours, how)).rgb == plain.rgb);
  how.progressive = true; // the same coefficients in another order
  CHECK(pixels_of(jpeg_file(colours, how)).rgb == plain.rgb);
  how = {};
  how.full_chroma = true;
  CHECK(largest_difference(pixels_of(jpeg_file(colours, how)), colours) < 12);
  how = {};
  how.grey = true;
  CHECK(largest_difference(pixels_of(jpeg_file(grey, how)), grey) < 8);
  how = {};
  how.cmyk = true;
  CHECK(largest_difference(pixels_of(jpeg_file(colours, how)), colours) < 12);
  CHECK(pixels_of(jpeg_file(gradient(1, 1))).rgb.size() == 3);
}

TEST_CASE("every kind of PNG gives its picture") {
  const auto p = gradient(20, 9);
  CHECK(pixels_of(png_file(p)).rgb == p.rgb);
  const auto byte = [&](int x, int y, int channel) {
    return p.rgb[static_cast<std::size_t>(3 * (20 * y + x) + channel)];
  };
  const auto make = [&](int type, int depth, auto pixel) {
    png_content content{20, 9, type, depth, {}};
    for (int y = 0; y < 9; ++y) {
      content.rows.emplace_back();
      for (int x = 0; x < 20; ++x) pixel(content.rows.back(), x, y);
    }
    return content;
  };
  using row = std::vector<std::uint8_t>;

  SECTION("alpha is dropped") {
    auto file = png_file(make(PNG_COLOR_TYPE_RGB_ALPHA, 8, [&](row& to, int x, int y) {
      to.insert(to.end(), {byte(x, y, 0), byte(x, y, 1), byte(x, y, 2), static_cast<std::uint8_t>(x)});
    }));
    CHECK(pixels_of(file).rgb == p.rgb);
  }
  SECTION("of 16 bits the high byte counts") {
    auto content = make(PNG_COLOR_TYPE_RGB, 16, [&](row& to, int x, int y) {
      for (int c = 0; c < 3; ++c) to.insert(to.end(), {byte(x, y, c), static_cast<std::uint8_t>(200 + c)});
    });
    CHECK(pixels_of(png_file(content)).rgb == p.rgb);
    content.interlaced = true;
    CHECK(pixels_of(png_file(content)).rgb == p.rgb);
    auto grey = pixels_of(png_file(make(PNG_COLOR_TYPE_GRAY, 16, [&](row& to, int x, int y) {
      to.insert(to.end(), {byte(x, y, 0), 255});
    })));
    CHECK(grey.rgb == gradient(20, 9, false).rgb);
  }
  SECTION("grey of few bits spans black to white") {
    for (int depth : {1, 2, 4}) {
      const int levels = 1 << depth;
      png_content content{8, 1, PNG_COLOR_TYPE_GRAY, depth, {row(static_cast<std::size_t>(depth))}};
      for (int x = 0; x < 8; ++x)
        content.rows[0][static_cast<std::size_t>(x * depth / 8)] |=
            static_cast<std::uint8_t>(x % levels << (8 - depth - x * depth % 8));
      auto read = pixels_of(png_file(content));
      for (int x = 0; x < 8; ++x)
        CHECK(read.rgb[static_cast<std::size_t>(3 * x + 1)] == x % levels * 255 / (levels - 1));
    }
  }
  SECTION("whatever follows the pixels") {
    constexpr std::size_t end_chunk = 12, checksum = 4;
    auto file = png_file(p);
    file[file.size() - end_chunk - 1] ^= 1;
    CHECK(pixels_of(file).rgb == p.rgb);
    file.erase(file.size() - end_chunk - checksum - 2, 1); // in zlib's checksum: all behind it moves
    CHECK(pixels_of(file).rgb == p.rgb);
  }
  SECTION("a palette") {
    png_content content{4, 1, PNG_COLOR_TYPE_PALETTE, 8, {{2, 0, 1, 2}}, false, {1, 2, 3, 10, 20, 30, 100, 200, 250}};
    CHECK(pixels_of(png_file(content)).rgb == row{100, 200, 250, 1, 2, 3, 10, 20, 30, 100, 200, 250});
  }
}

TEST_CASE("every kind of WebP gives its picture") {
  const auto p = gradient(45, 31);
  CHECK(pixels_of(webp_file(p, true)).rgb == p.rgb);
  CHECK(pixels_of(webp_file(p, true, 7)).rgb == p.rgb);
  CHECK(largest_difference(pixels_of(webp_file(p, false)), p) < 16);
  const std::string animation("RIFF\x1E\0\0\0WEBPVP8X\x0A\0\0\0\x02\0\0\0\x0F\0\0\x0F\0\0ANIM\0\0\0\0", 38);
  CHECK(objection_to(animation) == "an animated WebP file");
}

TEST_CASE("a file that claims to be enormous costs nothing") {
  const auto p = gradient(64, 64);
  const auto jpeg = jpeg_file(p), png = png_file(p);
  const auto before = peak_kilobytes();
  CHECK_THAT(objection_to(with_jpeg_size(jpeg, 60000, 60000)), Catch::Contains("60000x60000 pixels"));
  CHECK_THAT(objection_to(with_jpeg_size(jpeg, 4097, 1)), Catch::Contains("4097x1 pixels"));
  CHECK_THAT(objection_to(with_png_size(png, 60000, 60000)), Catch::Contains("60000x60000 pixels"));
  CHECK_FALSE(objection_to(with_png_size(png, 0x7FFFFFFF, 0x7FFFFFFF)).empty());
  CHECK_FALSE(objection_to(with_png_size(png, 0xFFFFFFFF, 1)).empty());
  CHECK_FALSE(objection_to(with_jpeg_size(jpeg, 0, 5)).empty());
  auto progressive = jpeg_options{};
  progressive.progressive = true;
  CHECK_THAT(objection_to(with_jpeg_size(jpeg_file(p, progressive), 65500, 65500)),
             Catch::Contains("65500x65500 pixels"));
  CHECK(peak_kilobytes() - before < 32 * 1024);
}

TEST_CASE("a file that is cut short is an error") {
  const auto p = gradient(64, 48);
  for (const auto& file : {jpeg_file(p), png_file(p), webp_file(p, true), webp_file(p, false)}) {
    for (std::size_t length = 0; length < file.size() * 9 / 10; length += 1 + length / 16) {
      INFO(length << " bytes of " << file.size());
      CHECK_FALSE(objection_to(file.substr(0, length)).empty());
    }
  }
  CHECK(objection_to("") == "an empty file");
  CHECK(objection_to("GIF89a") == "neither a JPEG, a PNG nor a WebP file");
  auto broken = png_file(p);
  constexpr std::size_t pixels_at = 41;
  broken[pixels_at] ^= 0x0f; // not deflate any more
  CHECK_THAT(objection_to(broken), Catch::Contains("not a readable PNG file"));
}

TEST_CASE("a JPEG of endless scans is refused") {
  jpeg_options how;
  how.progressive = true;
  auto file = jpeg_file(gradient(32, 32), how);
  // Repeats the last scan many times.
  const auto last = file.rfind("\xFF\xDA");
  const auto scan = file.substr(last, file.size() - 2 - last);
  file.resize(file.size() - 2);
  for (int i = 0; i < 200; ++i) file += scan;
  CHECK_THAT(objection_to(file + "\xFF\xD9"), Catch::Contains("more than 20 scans"));
}
