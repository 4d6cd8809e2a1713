#include "inference/kernels/varlen_attention.hpp"
#include "inference/verify/verify.hpp"
#include "tests/accelerator/pretend_device.hpp"

#include <catch2/catch.hpp>

#include <sstream>
#include <string>

using parley::inference::varlen_attention;
using namespace parley::inference::testing;
using namespace parley::inference::verify;

namespace {

/// The lines of cases that did not pass.
std::string misses(const std::string& lines) {
  std::string missed;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("FAIL")) missed += line + '\n';
  return missed;
}

} // namespace

TEST_CASE("a device reproduces the thinker's goldens") {
  take_work();
  std::ostringstream out;
  const auto status =
      run_verify("tests/data/checkpoints/tiny", "tests/data/goldens/thinker", out, {.device = pretend_device().str()});
  CHECK(misses(out.str()) == "");
  CHECK(status == 0);
  CHECK(take_work().kernels > 10000); // it did the work
}

TEST_CASE("a device reproduces the thinker's goldens without fused attention") {
  take_work();
  std::ostringstream out;
  run_verify("tests/data/checkpoints/tiny", "tests/data/goldens/thinker", out,
             {.device = pretend_device().str(), .plain_attention = true});
  varlen_attention::prefer_loop(false);
  CHECK(misses(out.str()) == "");
  CHECK_FALSE(take_work().by_kernel.contains("aten::_efficient_attention_forward"));
}

TEST_CASE("a device reproduces whole conversations") {
  std::ostringstream out;
  const auto status = run_verify("models/tiny-omni", "tests/data/goldens/e2e", out, {.device = pretend_device().str()});
  CHECK(misses(out.str()) == "");
  CHECK(status == 0);
}
