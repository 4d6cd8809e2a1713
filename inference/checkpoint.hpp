#pragma once

#include "inference/awq.hpp"

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
/// The files are mapped, not read: opening costs no memory, and a tensor keeps its mapping alive after the checkpoint
/// is gone. Copies are cheap and share the mappings. Safe to read from several threads.
class checkpoint {
public:
  /// Throws std::runtime_error naming the file when the folder holds no readable weights, and says in words what it
  /// holds instead: files of another format, pointers of Git LFS, a download that has not ended. `assets`: see below.
  static checkpoint open(const std::filesystem::path& directory, const std::filesystem::path& assets = {});

  const std::filesystem::path& directory() const;

  /// The folder whose `assets` belong to this checkpoint: its own unless another one was named.
  const std::filesystem::path& assets() const;

  /// Whether the tensor is there, plain or as the parts of an AWQ matrix.
  bool has(std::string_view name) const;

  /// The parts that stand for the matrix `name` ("….weight") in a checkpoint quantized by AWQ; none = it is stored plainly,
  /// or not at all.
  std::optional<awq_matrix> quantized(std::string_view name) const;

  /// All names that begin with `prefix`, sorted, with the prefix kept.
  std::vector<std::string> names(std::string_view prefix = {}) const;

  /// As stored, a view of the file: never write to it. Throws std::runtime_error naming tensor and folder when missing.
  at::Tensor stored(std::string_view name) const;

  /// Converted, an AWQ matrix unpacked; still a view of the file when nothing had to be converted. Throws like `stored`.
  at::Tensor tensor(std::string_view name, at::ScalarType dtype, at::Device device = at::kCPU) const;

  /// The tensors below `prefix` (e.g. "llm."), all handed out with this dtype on this device.
  weights view(std::string prefix, at::ScalarType dtype = at::kFloat, at::Device device = at::kCPU) const;

private:
  struct index;
  explicit checkpoint(std::shared_ptr<const index> tensors);

  std::shared_ptr<const index> index_;
};

/// The tensors below one prefix of a checkpoint, in the dtype and on the device in which a module wants them.
class weights {
public:
  weights(checkpoint source, std::string prefix, at::ScalarType dtype, at::Device device);

  /// `name` is relative to the prefix. Throws std::runtime_error naming the full tensor and the folder when missing.
  at::Tensor tensor(std::string_view name) const;

  /// Like `tensor`, and throws when the shape is another one (-1 takes any extent).
  at::Tensor tensor(std::string_view name, at::IntArrayRef shape) const;

  /// Whether `tensor` hands it out as it lies in the file, without a copy.
  bool mapped(std::string_view name) const;

  /// As `checkpoint::quantized`, on this view's device.
  std::optional<awq_matrix> quantized(std::string_view name) const;

  bool has(std::string_view name) const;

  /// A deeper view: `view("llm.").sub("model.layers.0.")`.
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
