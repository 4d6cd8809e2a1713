#pragma once

#include "inference/speech/onnx_graph.hpp"

#include <ATen/core/Tensor.h>

namespace parley::inference::speech {

/// Interprets an ONNX graph of one input and one output with ATen operations: the operators that exports of CAM++ use
/// (opset 11 to 18). Follows onnxruntime 1.31 where runtimes differ (TALKER.md 2, AveragePool).
class onnx_runner {
public:
  /// Throws std::runtime_error naming the file and the operator when the graph holds one that is not known.
  explicit onnx_runner(onnx_graph graph, at::Device device = at::kCPU);

  /// Shapes and dtypes are the graph's own; the result is on the device of this object. Throws std::runtime_error
  /// naming file and node when an operation can't be done. Thread-safe.
  at::Tensor run(const at::Tensor& input) const;

private:
  onnx_graph graph_;
  at::Device device_;
  std::vector<std::vector<std::string>> dead_after_; ///< values whose last reader is node i
};

} // namespace parley::inference::speech
