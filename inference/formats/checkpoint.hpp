#pragma once

#include "inference/formats/awq.hpp"

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parley::inference {

class weights;

/// The tensors of a checkpoint folder: `model.safetensors`, or the shards named by `model.safetensors.index.json`.
/// Files are mapped, not read: opening costs no memory, and a tensor keeps its mapping alive after the checkpoint is
/// gone. Copies are cheap and share the mappings. Several threads may read it.
class checkpoint {
public:
  /// Throws std::runtime_error naming the file if the folder holds no readable weights, and says what it holds instead:
  /// files of another format, Git LFS pointers, an unfinished download. `assets`: see below.
  static checkpoint open(const std::filesystem::path& directory, const std::filesystem::path& assets = {});

  const std::filesystem::path& directory() const;

  /// The folder whose `assets` belong to this checkpoint: its own, unless another one was named.
  const std::filesystem::path& assets() const;

  /// Whether the tensor exists, stored plainly or as the parts of an AWQ matrix.
  bool has(std::string_view name) const;

  /// The parts that represent the matrix `name` ("….weight") in a checkpoint quantized by AWQ; none = it is stored
  /// plainly, or not at all.
  std::optional<awq_matrix> quantized(std::string_view name) const;

  /// All names that begin with `prefix`, sorted, including the prefix.
  std::vector<std::string> names(std::string_view prefix = {}) const;

  /// As stored: a view of the file, never to be written to. Throws std::runtime_error naming tensor and folder if it is
  /// missing.
  at::Tensor stored(std::string_view name) const;

  /// Converted to the dtype, with an AWQ matrix unpacked; still a view of the file if no conversion was needed. Throws
  /// like `stored`.
  at::Tensor tensor(std::string_view name, at::ScalarType dtype, at::Device device = at::kCPU) const;

  /// The tensors below `prefix` (e.g. "llm."), converted to this dtype on this device.
  weights view(std::string prefix, at::ScalarType dtype = at::kFloat, at::Device device = at::kCPU) const;

private:
  struct index;
  explicit checkpoint(std::shared_ptr<const index> tensors);

  std::shared_ptr<const index> index_;
};

/// The tensors below one prefix of a checkpoint, in the dtype and on the device that a module wants.
class weights {
public:
  weights(checkpoint source, std::string prefix, at::ScalarType dtype, at::Device device);

  /// `name` is relative to the prefix. Throws std::runtime_error naming the full tensor and the folder when missing.
  at::Tensor tensor(std::string_view name) const;

  /// Like `tensor`, but also throws when the shape differs (-1 matches any extent).
  at::Tensor tensor(std::string_view name, at::IntArrayRef shape) const;

  /// Whether `tensor` returns a view of the file, without a copy.
  bool mapped(std::string_view name) const;

  /// Like `checkpoint::quantized`, on this view's device.
  std::optional<awq_matrix> quantized(std::string_view name) const;

  bool has(std::string_view name) const;

  /// A view with a longer prefix: `view("llm.").sub("model.layers.0.")`.
  weights sub(std::string_view prefix) const;

  at::ScalarType dtype() const;
  at::Device device() const;
  const std::string& prefix() const;

private:
  checkpoint source_;
  std::string prefix_;
  at::ScalarType dtype_;
  at::Device device_;
};

} // namespace parley::inference
