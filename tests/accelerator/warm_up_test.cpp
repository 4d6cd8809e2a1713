#include "tests/accelerator/conversations.hpp"
#include "tests/accelerator/pretend_device.hpp"

#include <ATen/core/Tensor.h>
#include <catch2/catch.hpp>

#include <set>
#include <string>

using namespace parley::inference;
using namespace parley::inference::testing;

TEST_CASE("a ready engine has launched every kernel that a spoken second takes") {
  take_work();
  device_engine engine(pretend_device());
  const auto loaded = take_work().by_kernel;
  auto session = plain_session(plain);
  session.voice = nullptr;
  session.options.force_listen_count = 0;
  engine.handle(std::move(session));
  for (std::uint64_t u = 0; u < 3; ++u)
    engine.handle(submit_unit{{spoken_second(static_cast<int>(u)), {}, 1, false}, plain, u});
  engine.run();
  REQUIRE(sound_of(engine, plain).size() > 24000); // it spoke
  std::set<std::string> late;
  for (const auto& [kernel, count] : take_work().by_kernel)
    if (!loaded.contains(kernel)) late.insert(kernel);
  CHECK(late == std::set<std::string>{});
}
