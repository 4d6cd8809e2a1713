#pragma once

#include "inference/vision/encoder.hpp"
#include "inference/vision/resampler.hpp"

namespace parley::inference::vision {

/// From pieces of pictures to rows of the language model's input (THINKER.md 2.4, 2.5). Safe to use from several
/// threads.
class sight {
public:
  /// The views of "vpm." and "resampler."; `hidden_size`: of the language model. Throws as encoder and resampler do.
  sight(const vision_config& config, int hidden_size, const weights& encoder_weights, const weights& resampler_weights);

  /// One batched pass for every `vision_config::batch_size` pieces, of whichever sessions; at least one piece.
  /// [pieces, query_num, hidden], in the dtype and on the device of the weights.
  at::Tensor see(std::span<const patch_grid* const> pieces) const;

private:
  std::size_t batch_size_;
  encoder encoder_;
  resampler resampler_;
};

/// How pictures are cut for this checkpoint.
slicing slicing_of(const vision_config& config);

} // namespace parley::inference::vision
