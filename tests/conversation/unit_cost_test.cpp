#include "conversation/unit_cost.hpp"

#include <catch2/catch.hpp>

namespace parley::conversation {

TEST_CASE("frames cost a picture each, and slices only where there are any") {
  constexpr unit_cost cut{14, 66, true}, whole{14, 18, false};
  CHECK(cut.most_rows(0, 1, 20) == 34);
  CHECK(cut.most_rows(2, 1, 20) == 34 + 2 * 66);
  CHECK(cut.most_rows(2, 4, 20) == 34 + 2 * 5 * 66);
  CHECK(whole.most_rows(2, 4, 20) == 34 + 2 * 18);
}

} // namespace parley::conversation
