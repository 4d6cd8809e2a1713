#include "inference/vision/decode.hpp"
#include "inference/vision/pieces.hpp"
#include "tests/inference/picture_files.hpp"
#include "tests/support/mutated.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace parley::inference::testing;
using namespace parley::inference::vision;
using parley::test::mutated;

namespace {

constexpr int rounds = 2000; ///< for each kind of file

} // namespace

TEST_CASE("whatever the bytes, there is a picture or an objection") {
  const auto p = gradient(48, 40);
  jpeg_options progressive, grey, cmyk;
  progressive.progressive = grey.grey = cmyk.cmyk = true;
  progressive.orientation = 3;
  auto wide =
      png_content{24, 5, 2, 16, std::vector<std::vector<std::uint8_t>>(5, std::vector<std::uint8_t>(144, 9)), true};
  const std::vector<std::string> seeds{
      jpeg_file(p),   jpeg_file(p, progressive), jpeg_file(p, grey),  jpeg_file(p, cmyk),    png_file(p),
      png_file(wide), webp_file(p, true),        webp_file(p, false), webp_file(p, false, 9)};
  std::mt19937 random(20261121);
  auto pictures = 0, objections = 0;
  for (const auto& seed : seeds)
    for (int round = 0; round < rounds; ++round) {
      const auto file = mutated(seed, random);
      const auto decoded = decode_picture(file);
      if (!decoded) {
        REQUIRE_FALSE(decoded.error().empty());
        ++objections;
        continue;
      }
      ++pictures;
      REQUIRE(decoded->width >= 1);
      REQUIRE(decoded->width <= max_side);
      REQUIRE(decoded->height >= 1);
      REQUIRE(decoded->height <= max_side);
      REQUIRE(decoded->rgb.size() ==
              std::size_t{3} * static_cast<std::size_t>(decoded->width) * static_cast<std::size_t>(decoded->height));
      if (round % 20 != 0) continue;
      const auto sliced = slice_file(file, 1 + static_cast<int>(random() % 9), {});
      REQUIRE(sliced);
      REQUIRE(sliced->pieces.size() ==
              (sliced->grid ? 1U + static_cast<unsigned>(sliced->grid->columns * sliced->grid->rows) : 1U));
    }
  // Both must happen often; else this shows little.
  CHECK(pictures > 500);
  CHECK(objections > 500);
}
