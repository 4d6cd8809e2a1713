#pragma once

#include "inference/speech/onnx_graph.hpp"

#include <ATen/core/Tensor.h>

#include <stdexcept>

namespace parley::inference::speech {

/// An ONNX graph holds an operator that is not known.
class unknown_operator : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// What the last window of an average pool with count_include_pad is divided by, if it is a partial one. (Without
/// count_include_pad, as in the published CAM++, all versions of onnxruntime divide by what the window holds.)
enum class partial_window {
  by_opset,        ///< the whole kernel in files before opset 19, as onnxruntime did up to 1.23, else what it holds
  by_what_it_holds ///< whatever the file's opset, as onnxruntime does since
};

/// Interprets an ONNX graph of one input and one output with ATen operations: the operators that exports of CAM++ use
/// (opset 11 to 18).
class onnx_runner {
public:
  /// Throws `unknown_operator` naming the file and the operator when the graph holds one that is not known, and
  /// std::runtime_error when it has more inputs than one.
  explicit onnx_runner(onnx_graph graph, at::Device device = at::kCPU,
                       partial_window windows = partial_window::by_opset);

  /// Shapes and dtypes are the graph's own; the result is on the device of this object. Throws std::runtime_error
  /// naming file and node when an operation can't be done. Thread-safe.
  at::Tensor run(const at::Tensor& input) const;

private:
  onnx_graph graph_;
  at::Device device_;
  bool whole_kernel_;                                ///< a partial window is divided by the whole kernel
  std::vector<std::vector<std::string>> dead_after_; ///< values whose last reader is node i
};

} // namespace parley::inference::speech
