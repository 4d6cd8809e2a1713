#pragma once

#include "inference/formats/checkpoint.hpp"
#include "inference/formats/model_config.hpp"
#include "inference/vision/pieces.hpp"

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace parley::inference::vision {

/// Intermediate values, for golden cases.
struct encoder_trace {
  at::Tensor pixels;   ///< normalised, float32 [patches, 3, patch, patch]
  at::Tensor embedded; ///< input of the first layer, positions added: [patches, hidden]
};

/// SigLIP NaViT (docs/model/thinker.md 2.4) for pieces of any shapes at once: linear layers over the patches of all,
/// attention within each piece. A piece's result depends on the others only by rounding. May be used from several
/// threads.
class encoder {
public:
  /// `w` is the view of "vpm."; it determines dtype and device. Throws std::runtime_error naming a weight that is
  /// missing or does not fit `config`.
  encoder(const vision_config& config, const weights& w);

  /// Patches of all pieces (at least one), one piece after another: [patches, hidden] in the encoder's dtype.
  at::Tensor encode(std::span<const patch_grid* const> pieces, encoder_trace* trace = nullptr) const;

private:
  struct layer {
    at::Tensor norm1_weight, norm1_bias, qkv_weight, qkv_bias, out_weight, out_bias;
    at::Tensor norm2_weight, norm2_bias, fc1_weight, fc1_bias, fc2_weight, fc2_bias;
  };

  at::Tensor normalised(std::span<const patch_grid* const> pieces) const;

  vision_config config_;
  std::int64_t table_side_;
  at::Tensor mean_, std_; ///< float32 [3, 1, 1]
  at::Tensor patch_weight_, patch_bias_, positions_, norm_weight_, norm_bias_;
  std::vector<layer> layers_;
};

} // namespace parley::inference::vision
