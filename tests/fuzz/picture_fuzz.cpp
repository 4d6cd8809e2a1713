#include "inference/vision/decode.hpp"
#include "protocol/media/picture.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace vision = parley::inference::vision;

void parley::test::fuzz(std::string_view bytes) {
  static_cast<void>(protocol::read_jpeg_size(bytes));
  const auto picture = vision::decode_picture(bytes);
  if (!picture) {
    expect(!picture.error().empty(), "an objection has words");
    return;
  }
  expect(picture->width >= 1 && picture->width <= vision::max_side, "the width is bounded");
  expect(picture->height >= 1 && picture->height <= vision::max_side, "the height is bounded");
  const auto pixels = static_cast<std::size_t>(picture->width) * static_cast<std::size_t>(picture->height);
  expect(picture->rgb.size() == 3 * pixels, "three bytes a pixel");
}
