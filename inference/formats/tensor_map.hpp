#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <unordered_map>

namespace parley::inference::speech {

/// The named weights of one file. Looking up a tensor that is missing or has another shape throws std::runtime_error
/// naming file and tensor, so that a wrong file fails on loading and not in the middle of a sentence.
class tensor_map {
public:
  tensor_map() = default;
  explicit tensor_map(std::string origin) : origin_(std::move(origin)) {}

  void put(std::string name, at::Tensor tensor) { tensors_.insert_or_assign(std::move(name), std::move(tensor)); }

  bool has(std::string_view name) const { return tensors_.contains(std::string(name)); }

  /// Valid as long as the map.
  const at::Tensor& at(std::string_view name) const;

  /// -1 in `shape` matches any extent.
  const at::Tensor& at(std::string_view name, at::IntArrayRef shape) const;

  /// Undefined when missing.
  at::Tensor find(std::string_view name) const;

  /// How many of `<prefix>0…`, `<prefix>1…`, … exist, up to the first gap.
  int count(std::string_view prefix) const;

  /// The tensors whose names begin with `prefix`, under their names without it.
  tensor_map below(std::string_view prefix) const;

  /// Every tensor on `device`, floating-point ones converted to `dtype`.
  tensor_map to(at::Device device, at::ScalarType dtype = at::kFloat) const;

  std::size_t size() const { return tensors_.size(); }
  const std::string& origin() const { return origin_; }
  auto begin() const { return tensors_.begin(); }
  auto end() const { return tensors_.end(); }

private:
  std::string origin_;
  std::unordered_map<std::string, at::Tensor> tensors_;
};

} // namespace parley::inference::speech
