#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace parley::inference::init {

/// A tensor to draw: normal with this mean and deviation.
struct planned_tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  double mean = 0;
  double deviation = 0;

  std::uint64_t values() const;
};

/// All tensors of a checkpoint with this config.json, by name (docs/model/thinker.md 0), scaled so that activations
/// keep their size from layer to layer. Throws nlohmann::json::exception when the config lacks a size.
std::vector<planned_tensor> plan_tensors(const nlohmann::json& config);

} // namespace parley::inference::init
