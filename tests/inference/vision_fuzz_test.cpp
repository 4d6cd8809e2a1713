#include "inference/vision/decode.hpp"
#include "inference/vision/pieces.hpp"
#include "tests/inference/picture_files.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace parley::inference::testing;
using namespace parley::inference::vision;

namespace {

constexpr int rounds = 2000; ///< of each kind of file

std::string mutated(std::string file, std::mt19937& random) {
  const auto any = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
  for (auto changes = 1 + any(6); changes > 0 && file.size() > 8; --changes) {
    const auto at = any(file.size());
    switch (any(6)) {
    case 0: file[at] = static_cast<char>(random()); break;
    case 1: file[at] = static_cast<char>(file[at] ^ 1 << any(8)); break;
    case 2: file.erase(at, 1 + any(20)); break;
    case 3: file.insert(at, std::string(1 + any(20), static_cast<char>(random()))); break;
    case 4: file.insert(at, file, any(file.size()), 1 + any(60)); break;
    case 5: file.resize(at); break;
    }
  }
  // Headers are where the damage is done.
  if (!file.empty() && any(3) == 0) file[any(std::min<std::size_t>(file.size(), 40))] = static_cast<char>(random());
  return file;
}

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
  // Both happen often, else this shows little.
  CHECK(pictures > 500);
  CHECK(objections > 500);
}
