#include "config/settings.hpp"
#include "inference/engine/device.hpp"
#include "inference/engine/device_names.hpp"
#include "tests/accelerator/conversations.hpp"
#include "tests/accelerator/pretend_device.hpp"

#include <ATen/Context.h>
#include <catch2/catch.hpp>

using namespace parley::inference;
using namespace parley::inference::testing;
using parley::config::dtype;
using parley::config::quantization;

namespace {

constexpr int small = 256, large = 4096;

} // namespace

TEST_CASE("auto takes the accelerator for a large model") {
  CHECK(find_device("auto", large) == pretend_device());
  CHECK(find_device("auto", small) == at::kCPU);
  CHECK(find_device("cpu", large) == at::kCPU);
  CHECK(find_device("pretend", small) == pretend_device());
  CHECK(find_device("pretend:0", small).str() == "pretend:0");
}

TEST_CASE("several devices are named one by one, or all at once") {
  using names = std::vector<std::string>;
  CHECK(devices_named("auto") == names{"auto"});
  CHECK(devices_named("cuda:1") == names{"cuda:1"});
  CHECK(devices_named("cuda:0,cuda:2") == names{"cuda:0", "cuda:2"});
  CHECK(devices_named("pretend:all") == names{"pretend:0"});
  CHECK_THROWS_WITH(devices_named("xpu:all"), "worker.device: xpu: this LibTorch is built without xpu");
  for (const auto* several : {"pretend:all", "pretend:0,pretend:0"})
    CHECK_THROWS_WITH(find_device(several, large), Catch::Contains("one device is needed here"));
}

TEST_CASE("the number format follows device and size unless it is named") {
  CHECK(find_dtype(dtype::automatic, pretend_device(), large) == at::kBFloat16);
  CHECK(find_dtype(dtype::automatic, pretend_device(), small) == at::kFloat);
  CHECK(find_dtype(dtype::automatic, at::kCPU, large) == at::kFloat);
  CHECK(find_dtype(dtype::float32, pretend_device(), large) == at::kFloat);
  CHECK(find_dtype(dtype::bfloat16, at::kCPU, small) == at::kBFloat16);
}

TEST_CASE("a device that is not there is refused in one line") {
  CHECK_THROWS_WITH(find_device("gpu", large), "worker.device: gpu: no device is called that");
  CHECK_THROWS_WITH(find_device("pretend:1", large),
                    "worker.device: pretend:1: this machine has 1 such device, counted from 0");
  CHECK_THROWS_WITH(find_device("xpu", large), "worker.device: xpu: this LibTorch is built without xpu");
  parley::config::settings settings;
  settings.worker.model = "models/tiny-omni";
  settings.worker.device = "xpu:0";
  CHECK_THROWS_WITH(make_engine(settings, [](event&&) {}), "worker.device: xpu:0: this LibTorch is built without xpu");
}

TEST_CASE("int8 is refused on an accelerator") {
  parley::config::settings settings;
  settings.engine.quant = quantization::int8;
  CHECK_THROWS_WITH(device_engine(pretend_device(), settings), Catch::Contains("engine.quant: int8 is for the CPU"));
}

TEST_CASE("attention is never cuDNN's, and float32 products are rounded only when serving") {
  set_up_accelerators(float32_products::exact);
  CHECK_FALSE(at::globalContext().userEnabledCuDNNSDP());
  CHECK_FALSE(at::globalContext().allowTF32CuBLAS());
  CHECK_FALSE(at::globalContext().allowTF32CuDNN());
  set_up_accelerators(float32_products::rounded);
  CHECK_FALSE(at::globalContext().userEnabledCuDNNSDP());
  CHECK(at::globalContext().allowTF32CuBLAS());
  CHECK(at::globalContext().allowTF32CuDNN());
}
