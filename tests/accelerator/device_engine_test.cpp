#include "tests/accelerator/conversations.hpp"
#include "tests/accelerator/pretend_device.hpp"

#include <ATen/core/Tensor.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

/// The vocoder turns rounding errors into phase: the same bound as for recorded streams.
constexpr float sound_tolerance = 1.5e-3F;

const device_engine& on_cpu() {
  static const auto done = [] {
    auto made = std::make_unique<device_engine>(at::kCPU);
    converse(*made, 6);
    return made;
  }();
  return *done;
}

float difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  auto worst = 0.0F;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

bool any_failed(const device_engine& engine) {
  return std::ranges::any_of(engine.events, [](const auto& e) { return std::holds_alternative<failed>(e); });
}

} // namespace

TEST_CASE("conversations on a device are the CPU's") {
  device_engine engine(pretend_device());
  take_work();
  converse(engine, 6);
  CHECK(take_work().kernels > 10000); // it did the work
  CHECK_FALSE(any_failed(engine));
  for (session_id id : {plain, seeing, sliding, sharing, chatting}) {
    INFO("session " << id);
    CHECK(lines_of(engine, id) == lines_of(on_cpu(), id));
    const auto sound = sound_of(engine, id), expected = sound_of(on_cpu(), id);
    CHECK(expected.size() > 4000); // else this shows little
    CHECK(difference(sound, expected) < sound_tolerance);
  }
  CHECK(engine.engine->capacity().prompt_hits == 1);
}

TEST_CASE("a device computes in bfloat16") {
  parley::config::settings settings;
  settings.engine.precision = parley::config::dtype::bfloat16;
  device_engine engine(pretend_device(), settings);
  converse(engine, 2);
  CHECK_FALSE(any_failed(engine));
  for (session_id id : {plain, seeing, sliding, sharing, chatting}) CHECK(lines_of(engine, id).size() > 1);
}
