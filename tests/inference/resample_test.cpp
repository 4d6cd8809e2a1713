#include "inference/speech/resample.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <numbers>

using parley::inference::speech::resample;

TEST_CASE("rates without a common divisor are resampled as well as others, and without a kernel of gigabytes") {
  constexpr auto frequency = 440.0, seconds = 2.0;
  for (const auto& [from, to] :
       {std::pair{16000, 24000}, {22050, 16000}, {44100, 24000}, {15991, 16000}, {15991, 24000}, {191999, 16000}}) {
    CAPTURE(from, to);
    const auto tone = [&](int rate) {
      return at::sin(at::arange(static_cast<std::int64_t>(seconds * rate), at::kDouble) *
                     (2 * std::numbers::pi * frequency / rate));
    };
    const auto made = resample(at::stack({tone(from), -tone(from)}).to(at::kFloat), from, to);
    const auto expected = tone(to);
    REQUIRE(made.size(0) == 2);
    CHECK(std::abs(made.size(1) - expected.size(0)) <= 1);
    const auto inner = [&](const at::Tensor& x) {
      return x.narrow(0, to / 10, to);
    }; // the ends hear the silence around them
    CHECK((inner(made[0]) - inner(expected)).abs().max().item<double>() < 2e-3);
    CHECK((inner(made[0]) + inner(made[1])).abs().max().item<double>() < 1e-6);
  }
}
