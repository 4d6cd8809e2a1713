#pragma once

#include "inference/formats/onnx_graph.hpp"
#include "inference/speech/layers.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace parley::inference::speech {

/// The supervised speech tokenizer, version 2: 100 Hz log mel to 25 Hz tokens (docs/model/talker.md 6.2). The ONNX file
/// is only a container of weights; like the reference, we wrote the network out in code.
class s3_tokenizer {
public:
  /// Throws std::runtime_error naming the file when a weight is missing.
  explicit s3_tokenizer(const onnx_graph& graph, at::Device device = at::kCPU);

  /// log_mel float32 [mels, frames] → tokens int64 [ceil(frames / 4)]. More than 30 s are processed in overlapping
  /// windows.
  at::Tensor tokens(const at::Tensor& log_mel) const;

  /// The quantizer's input before rounding, for at most 30 s: float32 [tokens, digits].
  at::Tensor project(const at::Tensor& log_mel) const;

private:
  struct block {
    layer_norm attention_norm, feed_norm;
    linear query, key, value, out, widen, narrow;
    at::Tensor memory; ///< [width, 1, 31]
  };

  /// mel [B, mels, frames], with the number of real frames of each → [B, rows, digits]; padding after the real frames
  /// has no influence.
  at::Tensor run(const at::Tensor& mel, const std::vector<std::int64_t>& frames) const;
  at::Tensor attend(const block& layer, const at::Tensor& x, const at::Tensor& real, const at::Tensor& bias) const;
  at::Tensor quantise(const at::Tensor& projected) const;

  padded_conv conv_first_, conv_second_;
  std::vector<block> blocks_;
  linear project_;
};

} // namespace parley::inference::speech
