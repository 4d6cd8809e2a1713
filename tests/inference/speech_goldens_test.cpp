#include "inference/verify/verify.hpp"

#include <catch2/catch.hpp>

#include <sstream>

TEST_CASE("the public talker goldens are reproduced") {
  std::ostringstream out;
  const int status =
      parley::inference::verify::run_verify("tests/data/checkpoints/tiny-talker", "tests/data/goldens/talker", out);
  INFO(out.str());
  CHECK(status == 0);
  CHECK_THAT(out.str(), Catch::Contains("40 passed, 0 failed"));
}
