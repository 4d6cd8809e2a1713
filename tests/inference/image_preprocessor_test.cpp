#include "inference/engine/image_preprocessor.hpp"

#include "inference/vision/decode.hpp"
#include "tests/inference/picture_files.hpp"

#include <catch2/catch.hpp>

using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

image_file picture(int side) {
  return std::make_shared<const std::string>(jpeg_file(gradient(side, side)));
}

std::shared_ptr<image_job> order_of(session_id owner, std::vector<image_file> files) {
  auto order = std::make_shared<image_job>();
  order->owner = owner;
  order->files = std::move(files);
  order->most_pieces = 1000;
  return order;
}

void wait_for(image_preprocessor& preprocessor, std::uint64_t count) {
  while (preprocessor.finished() < count) preprocessor.wait(preprocessor.finished(), std::chrono::milliseconds(100));
}

} // namespace

TEST_CASE("sessions take turns at the preprocessor, one file at a time") {
  image_preprocessor preprocessor({}, 1, 8);
  const auto many = order_of(1, std::vector<image_file>(40, picture(400)));
  const auto more = order_of(1, {picture(64)});
  const auto single = order_of(2, {picture(64)});
  REQUIRE(preprocessor.take(many));
  REQUIRE(preprocessor.take(more));
  REQUIRE(preprocessor.take(single));
  wait_for(preprocessor, 1);
  CHECK(single->done);
  CHECK_FALSE(more->done);
  wait_for(preprocessor, 3);
  CHECK(many->done);
  CHECK(many->problem.empty());
  CHECK(many->pictures.size() == 40);
  CHECK(more->pictures.size() == 1);
}

TEST_CASE("what nobody waits for is not carried out") {
  image_preprocessor preprocessor({}, 1, 8);
  for (auto round = 0; round < 6; ++round)
    REQUIRE(preprocessor.take(order_of(1, std::vector<image_file>(40, picture(800))))); // abandoned at once
  const auto wanted = order_of(1, {picture(64)});
  REQUIRE(preprocessor.take(wanted));
  wait_for(preprocessor, 1);
  while (!wanted->done) preprocessor.wait(preprocessor.finished(), std::chrono::milliseconds(100));
  CHECK(wanted->pictures.size() == 1);
}

TEST_CASE("decoding stops when nobody wants the picture any more") {
  const auto plain = gradient(600, 600);
  for (const auto& file : {jpeg_file(plain, {.progressive = true}), jpeg_file(plain), png_file(plain)}) {
    auto asked = 0;
    const auto given_up = vision::decode_picture(file, [&] { return ++asked < 3; });
    CHECK_FALSE(given_up);
    CHECK(asked == 3);
    asked = 0;
    CHECK(vision::decode_picture(file, [&] { return ++asked > 0; }));
    CHECK(asked > 3);
  }
}
