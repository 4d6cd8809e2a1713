#pragma once

#include "inference/vision/encoder.hpp"
#include "inference/vision/resampler.hpp"

namespace parley::inference::vision {

/// Turns pieces of pictures into rows of the language model's input (docs/model/thinker.md 2.4, 2.5). Thread-safe.
class sight {
public:
  /// Takes the views of "vpm." and "resampler."; `hidden_size` is the language model's. Throws like encoder and
  /// resampler.
  sight(const vision_config& config, int hidden_size, const weights& encoder_weights, const weights& resampler_weights);

  /// One batched pass per `vision_config::batch_size` pieces, which may belong to different sessions; at least one
  /// piece. Returns [pieces, query_num, hidden], in the weights' dtype and on their device.
  at::Tensor see(std::span<const patch_grid* const> pieces) const;

private:
  std::size_t batch_size_;
  encoder encoder_;
  resampler resampler_;
};

/// How pictures are cut for this checkpoint.
slicing slicing_of(const vision_config& config);

} // namespace parley::inference::vision
