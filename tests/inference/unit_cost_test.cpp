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

} // namespace parley::inference
