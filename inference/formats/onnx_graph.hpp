#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace parley::inference::speech {

/// The value of a node's attribute; only the field of its kind is set.
struct onnx_attribute {
  std::int64_t integer = 0;
  float real = 0;
  std::string text;
  std::vector<std::int64_t> integers;
  std::vector<float> reals;
  at::Tensor tensor;
};

/// One operation. Its inputs and outputs are values, referred to by name.
struct onnx_node {
  std::string op;
  std::string name;
  std::vector<std::string> inputs; ///< an empty name means an omitted input
  std::vector<std::string> outputs;
  std::unordered_map<std::string, onnx_attribute> attributes;

  std::int64_t integer(const std::string& key, std::int64_t otherwise) const;
  float real(const std::string& key, float otherwise) const;
  std::string text(const std::string& key, const std::string& otherwise) const;
  std::vector<std::int64_t> integers(const std::string& key) const; ///< empty when absent
};

/// The graph of an ONNX file: the parts of onnx.proto that the reference's exports use. Reads protobuf itself.
struct onnx_graph {
  std::string origin;     ///< the file name, for messages
  std::int64_t opset = 0; ///< version of the standard operators; 0 = the file does not say
  std::vector<onnx_node> nodes;
  std::unordered_map<std::string, at::Tensor> initializers;
  std::vector<std::string> inputs; ///< without the initializers
  std::vector<std::string> outputs;

  /// Null if there is none.
  const onnx_node* find_node(std::string_view name) const;
};

/// Maps the file and copies its tensors. Throws std::runtime_error naming the file if it can't be read, is truncated,
/// or stores its data in another file.
onnx_graph read_onnx(const std::filesystem::path& file);

} // namespace parley::inference::speech
