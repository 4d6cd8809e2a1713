#include "inference/vision/pieces.hpp"
#include "inference/vision/placeholder.hpp"
#include "inference/vision/resize.hpp"
#include "inference/vision/slices.hpp"
#include "tests/inference/picture_files.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace parley::inference::testing;
using namespace parley::inference::vision;

TEST_CASE("pieces fit the encoder, whatever the picture") {
  std::mt19937 random(3);
  const slicing how;
  for (int i = 0; i < 2000; ++i) {
    const auto side = [&] { return 1 + static_cast<int>(random() % (i % 2 == 0 ? 4096 : 64)); };
    const pixel_size size{side(), side()};
    const int most = 1 + i % 9;
    const auto plan = plan_slices(size, most, how);
    INFO(size.width << 'x' << size.height << " in " << most);
    REQUIRE(plan.pieces() - 1 <= most);
    REQUIRE(plan.overview.width % how.patch_size == 0);
    REQUIRE(plan.overview.height % how.patch_size == 0);
    if (most == 1) REQUIRE_FALSE(plan.grid);
    if (!plan.grid) continue;
    REQUIRE(plan.pieces() > 2);
    REQUIRE(plan.refined.width % (plan.grid->columns * how.patch_size) == 0);
    REQUIRE(plan.refined.height % (plan.grid->rows * how.patch_size) == 0);
  }
}

TEST_CASE("the narrowest pictures are cut too") {
  for (const auto size : {pixel_size{4096, 1}, pixel_size{1, 4096}, pixel_size{1, 1}}) {
    picture p{size.width, size.height, {}};
    p.rgb.assign(static_cast<std::size_t>(3 * size.width * size.height), 100);
    const auto pieces = cut_pieces(p, plan_slices(size, 9, {}));
    REQUIRE(pieces.size() == 1);
    for (auto byte : pieces[0].rgb) REQUIRE(byte == 100); // a single colour stays the same
    const auto patches = to_patches(pieces[0], 14);
    CHECK(patches.patches() * 14 * 14 * 3 == std::ssize(patches.values));
    CHECK(patches.patches() <= 2048);
  }
}

TEST_CASE("a checkpoint without slices shows the whole alone") {
  slicing how;
  how.slice_mode = false;
  CHECK(plan_slices({1920, 1080}, 9, how).pieces() == 1);
  CHECK(plan_slices({1920, 1080}, 9, {}).pieces() == 9);
}

TEST_CASE("patches hold the pixels of their place") {
  const auto p = gradient(42, 28);
  const auto grid = to_patches(p, 14);
  REQUIRE(grid.rows == 2);
  REQUIRE(grid.columns == 3);
  const auto at = [&](int patch, int channel, int y, int x) {
    return grid.values[static_cast<std::size_t>(((patch * 3 + channel) * 14 + y) * 14 + x)];
  };
  CHECK(at(4, 1, 3, 5) == p.rgb[static_cast<std::size_t>(3 * ((14 + 3) * 42 + 14 + 5) + 1)]);
  CHECK(at(2, 2, 13, 13) == p.rgb[static_cast<std::size_t>(3 * (13 * 42 + 41) + 2)]);
}

TEST_CASE("an axis that keeps its size is not touched") {
  const auto p = gradient(50, 40);
  CHECK(resize(p, 50, 40).rgb == p.rgb);
  const auto wider = resize(p, 80, 40), taller = resize(p, 50, 70);
  for (int y = 0; y < 40; ++y) CHECK(wider.rgb[static_cast<std::size_t>(3 * (80 * y) + 1)] == 255 * y / 40);
  for (int x = 0; x < 50; ++x) CHECK(taller.rgb[static_cast<std::size_t>(3 * x)] == 255 * x / 50);
}

TEST_CASE("placeholders name their pieces") {
  CHECK(image_placeholder({}, 2, {}) == "<image><unk><unk></image>");
  CHECK(image_placeholder(slice_grid{2, 1}, 1, 3) ==
        "<image_id>3</image_id><image><unk></image><slice><unk></slice><slice><unk></slice>");
  CHECK(image_placeholder(slice_grid{1, 2}, 1, {}) == "<image><unk></image><slice><unk></slice>\n<slice><unk></slice>");
}
