#pragma once

#include "inference/init/tensor_plan.hpp"

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace parley::inference::init {

using size = std::int64_t;

/// Collects tensors, each with the names of its modules as prefix.
class plan {
public:
  explicit plan(std::vector<planned_tensor>& out, std::string prefix = {}) : out_(out), prefix_(std::move(prefix)) {}

  plan under(const std::string& prefix) const { return plan(out_, prefix_ + prefix); }

  /// [out, in...], scaled so that outputs are as large as inputs.
  void weight(const std::string& name, std::vector<size> shape) const {
    auto inputs = std::accumulate(shape.begin() + 1, shape.end(), size{1}, std::multiplies<>());
    add(name, std::move(shape), 0, 1.0 / std::sqrt(static_cast<double>(inputs)));
  }
  void table(const std::string& name, size rows, size width) const { add(name, {rows, width}, 0, 0.5); }
  void scale(const std::string& name, size width) const { add(name, {width}, 1, 0.05); }
  void bias(const std::string& name, size width) const { add(name, {width}, 0, 0.02); }

  void linear(const std::string& name, size out, size in) const {
    weight(name + ".weight", {out, in});
    bias(name + ".bias", out);
  }
  void layer_norm(const std::string& name, size width) const {
    scale(name + ".weight", width);
    bias(name + ".bias", width);
  }

  void add(const std::string& name, std::vector<size> shape, double mean, double deviation) const {
    out_.push_back({prefix_ + name, std::move(shape), mean, deviation});
  }

private:
  std::vector<planned_tensor>& out_;
  std::string prefix_;
};

} // namespace parley::inference::init
