#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace parley::inference {

/// One mapped `.safetensors` file. Tensors are views of the mapping and keep it alive; never write to one. Copies share
/// the mapping. Several threads may read it.
class safetensors_file {
public:
  /// Throws std::runtime_error naming the file when it can't be mapped or its header is wrong: sizes, bounds, overlaps,
  /// types.
  static safetensors_file open(const std::filesystem::path& path);

  const std::filesystem::path& path() const;
  bool has(std::string_view name) const;

  /// In file order.
  const std::vector<std::string>& names() const;

  /// With the stored shape and dtype, on the CPU. Throws std::runtime_error naming tensor and file if it is missing.
  at::Tensor tensor(std::string_view name) const;

private:
  struct contents;
  explicit safetensors_file(std::shared_ptr<const contents> c);

  std::shared_ptr<const contents> contents_;
};

} // namespace parley::inference
