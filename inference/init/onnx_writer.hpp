#pragma once

#include "inference/init/tensor_plan.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace parley::inference::init {

/// Builds an ONNX graph of float32 tensors and writes it, using the few forms of onnx.proto that older exporters use.
/// Values are referred to by name; as exporters do, a node's first output has the node's name plus `_output_0`.
class onnx_writer {
public:
  /// An attribute of a node, made by one of the functions below.
  using attribute = std::string;
  static attribute integer(std::string_view name, std::int64_t value);
  static attribute integers(std::string_view name, const std::vector<std::int64_t>& values);
  static attribute real(std::string_view name, float value);
  static attribute text(std::string_view name, std::string_view value);
  /// An empty `shape` means a scalar.
  static attribute longs(std::string_view name, const std::vector<std::int64_t>& values,
                         const std::vector<std::int64_t>& shape);
  static attribute floats(std::string_view name, const std::vector<float>& values);

  /// Returns the name of the output.
  std::string node(const std::string& op, const std::string& name, const std::vector<std::string>& inputs,
                   const std::vector<attribute>& attributes = {});

  /// Adds the next tensor to be stored in the file; returns its name.
  std::string initializer(planned_tensor tensor);

  /// Adds a `Constant` node with one number (`shape` empty) or a list.
  std::string constant(const std::string& name, const std::vector<std::int64_t>& values, bool scalar = false);

  std::size_t nodes() const { return node_count_; }
  std::size_t initializers() const { return initializers_.size(); }

  /// `output` names the value that becomes the graph's output. Random numbers are drawn while writing. Throws
  /// std::runtime_error naming the file.
  void write(const std::filesystem::path& file, const std::string& input, const std::string& output, std::int64_t opset,
             std::uint64_t seed) const;

private:
  std::string nodes_; ///< encoded as fields of the graph
  std::size_t node_count_ = 0;
  std::vector<planned_tensor> initializers_;
};

} // namespace parley::inference::init
