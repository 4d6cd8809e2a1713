#include "inference/duplex/unit_cost.hpp"

#include <catch2/catch.hpp>

namespace parley::inference {

TEST_CASE("a unit's worst case follows the model's dimensions") {
  CHECK(duplex::unit_cost_of(model_config{}) == conversation::unit_cost{14, 66, true});
  CHECK(duplex::unit_cost_of(model_config::open("models/nano")) == conversation::unit_cost{14, 18, false});
  model_config wide;
  wide.audio.pool_step = 2;
  wide.vision.query_num = 100;
  CHECK(duplex::unit_cost_of(wide) == conversation::unit_cost{29, 102, true});
}

TEST_CASE("frames cost a picture each, and slices only where there are any") {
  constexpr conversation::unit_cost cut{14, 66, true}, whole{14, 18, false};
  CHECK(cut.most_rows(0, 1, 20) == 34);
  CHECK(cut.most_rows(2, 1, 20) == 34 + 2 * 66);
  CHECK(cut.most_rows(2, 4, 20) == 34 + 2 * 5 * 66);
  CHECK(whole.most_rows(2, 4, 20) == 34 + 2 * 18);
}

} // namespace parley::inference
