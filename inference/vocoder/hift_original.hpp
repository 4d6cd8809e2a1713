#pragma once

#include "inference/vocoder/hift_trunk.hpp"

#include <ATen/core/Tensor.h>

namespace parley::inference::speech {

/// The HiFT vocoder that sees both past and future (docs/model/talker.md 9): for whole utterances, and for streams of
/// the five-file folder. Stateless; tensors are float32.
class hift_original {
public:
  /// `state_dict`: from `read_vocoder`. Throws std::runtime_error naming a tensor that is missing or does not fit.
  explicit hift_original(const tensor_map& state_dict);

  /// mel [B, bins, frames] -> Hz [B, frames].
  at::Tensor f0(const at::Tensor& mel) const;

  /// f0 [B, frames], Gaussian noise [B, samples, harmonics], or mixed already [B, samples] -> excitation [B, 1, samples].
  at::Tensor source(const at::Tensor& f0, const at::Tensor& noise) const;

  struct result {
    at::Tensor speech; ///< [B, samples]
    at::Tensor source; ///< [B, 1, samples]
  };

  /// mel [B, bins, frames], noise as for `source`. `source_cache` [B, 1, n], if defined, replaces the first n samples
  /// of the excitation.
  result run(const at::Tensor& mel, const at::Tensor& noise, const at::Tensor& source_cache = {}) const;

  void use_bfloat16() { trunk_.use_bfloat16(); }
  const hift_trunk& trunk() const { return trunk_; }

private:
  struct folded {
    tensor_map weights; ///< with weight norm folded in
  };
  explicit hift_original(const folded& from);

  hift_trunk trunk_;
  padded_conv conv_pre_;
  std::vector<padded_conv> f0_convs_;
  linear f0_out_;
};

} // namespace parley::inference::speech
