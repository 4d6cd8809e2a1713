#pragma once

#include "inference/formats/onnx_runner.hpp"

#include <ATen/ATen.h>

namespace parley::inference::speech {

/// CAM++ identifies the speaker: one vector for a whole recording (docs/model/talker.md 2 and 6). Runs the ONNX file.
class campplus {
public:
  explicit campplus(onnx_graph graph, at::Device device = at::kCPU, partial_window windows = partial_window::by_opset)
      : network_(std::move(graph), device, windows) {}

  /// fbank float32 [frames, 80], not centred → float32 [192]. Throws like `onnx_runner::run`.
  at::Tensor embed(const at::Tensor& fbank) const {
    return network_.run((fbank - fbank.mean(0, true)).unsqueeze(0)).reshape(-1);
  }

private:
  onnx_runner network_;
};

} // namespace parley::inference::speech
