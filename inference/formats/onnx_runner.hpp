#pragma once

#include "inference/formats/onnx_graph.hpp"

#include <ATen/core/Tensor.h>

#include <stdexcept>

namespace parley::inference::speech {

/// An ONNX graph contains an unknown operator.
class unknown_operator : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// The divisor of the last window of an average pool with count_include_pad, if it is partial. (Without
/// count_include_pad, as in the published CAM++, all versions of onnxruntime divide by the number of the window's
/// elements.)
enum class partial_window {
  by_opset,        ///< the whole kernel in files before opset 19, as in onnxruntime up to 1.23, else the number of
                   ///< elements
  by_what_it_holds ///< the number of elements whatever the file's opset, as in onnxruntime since
};

/// Interprets an ONNX graph with one input and one output by ATen operations: the operators that exports of CAM++ use
/// (opset 11 to 18).
class onnx_runner {
public:
  /// Throws `unknown_operator` naming the file and the operator when the graph contains an unknown one, and
  /// std::runtime_error when it has more than one input.
  explicit onnx_runner(onnx_graph graph, at::Device device = at::kCPU,
                       partial_window windows = partial_window::by_opset);

  /// Shapes and dtypes are the graph's own; the result is on this object's device. Throws std::runtime_error naming
  /// file and node when an operation can't be done. Thread-safe.
  at::Tensor run(const at::Tensor& input) const;

private:
  onnx_graph graph_;
  at::Device device_;
  bool whole_kernel_;                                ///< a partial window is divided by the whole kernel
  std::vector<std::vector<std::string>> dead_after_; ///< values whose last reader is node i
};

} // namespace parley::inference::speech
