#include "inference/engine/device.hpp"

#include "config/settings.hpp"
#include "inference/engine/device_names.hpp"

#include <ATen/ATen.h>
#include <ATen/DeviceAccelerator.h>

#include <sstream>
#include <stdexcept>
#include <string_view>

namespace parley::inference {

namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw std::runtime_error("worker.device: " + name + ": " + why);
}

at::Device parsed(const std::string& name) {
  try {
    return at::Device(name);
  } catch (const c10::Error&) {
    refuse(name, "no device is called that");
  }
}

} // namespace

std::vector<std::string> devices_named(const std::string& text) {
  const std::string_view all = ":all";
  if (text.ends_with(all)) {
    const auto kind = text.substr(0, text.size() - all.size());
    const auto first = find_device(kind, small_hidden_size);
    std::vector<std::string> names;
    for (auto i = 0; i < at::accelerator::deviceCount(); ++i) names.push_back(kind + ':' + std::to_string(i));
    return first.is_cpu() ? std::vector{kind} : names;
  }
  std::vector<std::string> names;
  std::istringstream list(text);
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  return names;
}

at::Device find_device(const std::string& name, int hidden_size) {
  if (name.ends_with(":all") || name.find(',') != std::string::npos)
    refuse(name, "one device is needed here; for several, `parley serve` starts a worker each");
  if (name == "auto") {
    const auto kind = at::accelerator::getAccelerator();
    if (hidden_size < small_hidden_size || !kind || at::accelerator::deviceCount() == 0) return at::kCPU;
    return {*kind, 0};
  }
  auto device = parsed(name);
  if (device.is_cpu()) return device;
  if (!device.has_index()) device.set_index(0);
  const auto kind = c10::DeviceTypeName(device.type(), true);
  if (at::accelerator::getAccelerator() != device.type()) refuse(name, "this LibTorch is built without " + kind);
  const auto count = at::accelerator::deviceCount();
  if (count == 0) refuse(name, "LibTorch finds no " + kind + " device: is there one, and its driver?");
  if (device.index() >= count)
    refuse(name, "this machine has " + std::to_string(count) + " such " + (count == 1 ? "device" : "devices") +
                     ", counted from 0");
  return device;
}

at::ScalarType find_dtype(config::dtype wanted, at::Device device, int hidden_size) {
  switch (wanted) {
  case config::dtype::automatic: break;
  case config::dtype::float32: return at::kFloat;
  case config::dtype::bfloat16: return at::kBFloat16;
  case config::dtype::float16: return at::kHalf;
  }
  return device.is_cpu() || hidden_size < small_hidden_size ? at::kFloat : at::kBFloat16;
}

void set_up_accelerators(float32_products how) {
  auto& context = at::globalContext();
  // It makes a plan for each number of keys, and the number of keys changes with every token.
  context.setSDPUseCuDNN(false);
  const auto rounded = how == float32_products::rounded;
  context.setAllowTF32CuBLAS(rounded);
  context.setAllowTF32CuDNN(rounded);
}

std::function<bool()> device_probe(at::Device device) {
  return [one = at::ones({}, at::TensorOptions(device))] {
    try {
      return one.item<float>() == 1;
    } catch (...) {
      return false;
    }
  };
}

} // namespace parley::inference
