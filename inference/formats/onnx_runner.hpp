#pragma once

#include "inference/formats/onnx_graph.hpp"

#include <ATen/core/Tensor.h>

#include <stdexcept>

namespace parley::inference::speech {

/// Thrown if an ONNX graph contains an unknown operator.
class unknown_operator : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// How an average pool with count_include_pad divides its last window, if that is partial. (Without count_include_pad,
/// as in the published CAM++, all versions of onnxruntime divide by the number of elements in the window.)
enum class partial_window {
  by_opset,        ///< for files before opset 19 by the whole kernel, as onnxruntime did up to 1.23, otherwise by the
                   ///< number of elements
  by_what_it_holds ///< by the number of elements for every opset, as onnxruntime does since then
};

/// Interprets an ONNX graph with one input and one output, using ATen operations: the operators that exports of CAM++
/// use (opset 11 to 18).
class onnx_runner {
public:
  /// Throws `unknown_operator` naming the file and the operator if the graph contains an unknown one, and
  /// std::runtime_error if it has more than one input.
  explicit onnx_runner(onnx_graph graph, at::Device device = at::kCPU,
                       partial_window windows = partial_window::by_opset);

  /// Shapes and dtypes are those of the graph; the result is on this object's device. Throws std::runtime_error naming
  /// file and node if an operation fails. Thread-safe.
  at::Tensor run(const at::Tensor& input) const;

private:
  onnx_graph graph_;
  at::Device device_;
  bool whole_kernel_;                                ///< partial windows are divided by the whole kernel
  std::vector<std::vector<std::string>> dead_after_; ///< values that are not read after node i
};

} // namespace parley::inference::speech
