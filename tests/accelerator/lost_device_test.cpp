#include "inference/engine/session_table.hpp"
#include "tests/accelerator/conversations.hpp"
#include "tests/accelerator/pretend_device.hpp"

#include <ATen/core/Tensor.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

template<class T>
long count_of(const device_engine& engine) {
  return std::ranges::count_if(engine.events, [](const event& e) { return std::holds_alternative<T>(e); });
}

submit_unit unit_of(std::uint64_t number) {
  return {{spoken_second(static_cast<int>(number)), {}, 1, false}, plain, number};
}

struct broken_device {
  broken_device() { break_device(); }
  ~broken_device() { mend_device(); }
};

} // namespace

TEST_CASE("an engine whose device is lost ends, and tells nobody of a failure") {
  device_engine engine(pretend_device());
  auto session = plain_session(plain);
  session.options.force_listen_count = 0;
  engine.handle(std::move(session));
  engine.run();
  engine.handle(unit_of(0));
  const auto passes = GENERATE(0, 1, 3); // it may happen in any stage
  for (auto i = 0; i < passes; ++i) REQUIRE(engine.engine->advance());
  const auto told = engine.events.size();
  const broken_device now;
  CHECK_THROWS_WITH(engine.run(), Catch::Contains("the device pretend:0 is lost: the pretend device has failed"));
  CHECK_THROWS_WITH(engine.engine->advance(), Catch::Contains("is lost"));
  engine.handle(unit_of(1));
  CHECK(engine.events.size() == told);
}

TEST_CASE("a command that meets a lost device ends the engine") {
  device_engine engine(pretend_device());
  const broken_device now;
  engine.handle(plain_session(plain));
  CHECK_THROWS_WITH(engine.run(), Catch::Contains("is lost"));
  CHECK(engine.events.empty());
}

TEST_CASE("a unit that fails on a device that works is that unit's failure") {
  device_engine engine(pretend_device());
  engine.handle(plain_session(plain));
  auto bad = unit_of(0);
  bad.samples = std::make_shared<const std::vector<float>>(16000, NAN);
  engine.handle(std::move(bad));
  engine.handle(unit_of(1));
  engine.run();
  CHECK(count_of<failed>(engine) == 1);
  CHECK(count_of<step_output>(engine) > 0);
}
