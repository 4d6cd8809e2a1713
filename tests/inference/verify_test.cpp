#include "inference/verify/verify.hpp"

#include <catch2/catch.hpp>

#include <iostream>
#include <sstream>

using parley::inference::verify::run_verify;

TEST_CASE("the public thinker goldens are reproduced") {
  std::ostringstream out;
  int status = run_verify("tests/data/checkpoints/tiny", "tests/data/goldens/thinker", out);
  INFO(out.str());
  CHECK(status == 0);
}

TEST_CASE("a folder without goldens is refused") {
  std::ostringstream out;
  CHECK_THROWS_AS(run_verify("tests/data/checkpoints/tiny", "tests/data/checkpoints/tiny", out), std::runtime_error);
}
