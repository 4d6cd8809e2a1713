#pragma once

#include "inference/formats/checkpoint.hpp"
#include "inference/formats/model_config.hpp"
#include "inference/vision/pieces.hpp"

#include <ATen/core/Tensor.h>

#include <span>

namespace parley::inference::vision {

/// The perceiver after the encoder (docs/model/thinker.md 2.5): turns a piece's patches, however many, into `query_num`
/// rows of the language model's input. May be used from several threads.
class resampler {
public:
  /// `w` is the view of "resampler."; it determines dtype and device. `hidden_size` is the language model's. Throws
  /// std::runtime_error naming a weight that is missing or does not fit.
  resampler(const vision_config& config, int hidden_size, const weights& w);

  /// `patches` [patches, vision hidden] as returned by `encoder::encode` for `pieces` → [pieces, query_num, hidden].
  at::Tensor resample(const at::Tensor& patches, std::span<const patch_grid* const> pieces) const;

private:
  at::Tensor places(std::span<const patch_grid* const> pieces) const;

  std::int64_t hidden_, heads_;
  at::Tensor query_; ///< projected in advance, because it is the same for every piece. [query_num, hidden]
  at::Tensor kv_proj_, ln_kv_weight_, ln_kv_bias_, key_weight_, key_bias_, value_weight_, value_bias_;
  at::Tensor out_weight_, out_bias_, ln_post_weight_, ln_post_bias_, proj_;
  at::Tensor sines_; ///< [common_side, hidden / 2]
};

} // namespace parley::inference::vision
