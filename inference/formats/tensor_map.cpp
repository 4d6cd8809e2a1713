#include "inference/formats/tensor_map.hpp"

#include <ATen/ATen.h>

#include <sstream>
#include <stdexcept>

namespace parley::inference::speech {

const at::Tensor& tensor_map::at(std::string_view name) const {
  auto found = tensors_.find(std::string(name));
  if (found == tensors_.end()) throw std::runtime_error(origin_ + ": no tensor \"" + std::string(name) + "\"");
  return found->second;
}

const at::Tensor& tensor_map::at(std::string_view name, at::IntArrayRef shape) const {
  const auto& tensor = at(name);
  bool same = tensor.dim() == static_cast<std::int64_t>(shape.size());
  for (std::size_t i = 0; same && i < shape.size(); ++i)
    same = shape[i] == -1 || shape[i] == tensor.size(static_cast<std::int64_t>(i));
  if (!same) {
    std::ostringstream text;
    text << origin_ << ": tensor \"" << name << "\" has shape " << tensor.sizes() << ", expected " << shape;
    throw std::runtime_error(text.str());
  }
  return tensor;
}

at::Tensor tensor_map::find(std::string_view name) const {
  auto found = tensors_.find(std::string(name));
  return found == tensors_.end() ? at::Tensor() : found->second;
}

int tensor_map::count(std::string_view prefix) const {
  for (int n = 0;; ++n) {
    const auto wanted = std::string(prefix) + std::to_string(n) + '.';
    bool any = false;
    for (const auto& [name, tensor] : tensors_) any = any || name.starts_with(wanted);
    if (!any) return n;
  }
}

tensor_map tensor_map::below(std::string_view prefix) const {
  tensor_map result(origin_);
  for (const auto& [name, tensor] : tensors_)
    if (name.starts_with(prefix)) result.put(name.substr(prefix.size()), tensor);
  return result;
}

tensor_map tensor_map::to(at::Device device, at::ScalarType dtype) const {
  tensor_map result(origin_);
  for (const auto& [name, tensor] : tensors_)
    result.put(name, tensor.to(device, tensor.is_floating_point() ? dtype : tensor.scalar_type()));
  return result;
}

} // namespace parley::inference::speech
