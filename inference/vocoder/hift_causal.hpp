#pragma once

#include "inference/vocoder/hift_trunk.hpp"

#include <ATen/core/Tensor.h>

namespace parley::inference::speech {

/// The HiFT vocoder that sees the past and only a few frames ahead (docs/model/talker.md 10). Stateless;
/// `bounded_vocoder` streams it. Tensors are float32.
class hift_causal {
public:
  /// `state_dict`: from `read_vocoder`. Throws std::runtime_error naming a tensor that is missing or does not fit.
  hift_causal(const tensor_map& state_dict, hift_config config);

  /// mel [B, bins, frames] → Hz, float32 [B, frames], or `f0_right` fewer frames if more sound will follow (`!final`).
  /// Computed in double precision.
  at::Tensor f0(const at::Tensor& mel, bool final) const;

  /// mel [B, bins, frames], source [B, samples of these frames] → samples [B, …]: for all frames, or for all but the
  /// last `decoder_right` if more sound will follow.
  at::Tensor decode(const at::Tensor& mel, const at::Tensor& source, bool final) const;

  /// The same for streams of different lengths, elsewhere than on the CPU. mel [B, bins, frames + decoder_right - 1]: zero
  /// behind a stream's end. source [B, samples of these frames and one more]: mirrored there if the stream is final.
  /// `columns`: of each final stream, int32 [B], how many columns its spectrum has, of others at least as many as any;
  /// undefined = none is final. Returns samples [B, frames * frame_samples]; valid are those that `decode` returns.
  at::Tensor decode_together(const at::Tensor& mel, const at::Tensor& source, const at::Tensor& columns) const;

  void use_bfloat16() { trunk_.use_bfloat16(); }
  const hift_trunk& trunk() const { return trunk_; }

  // How many neighbouring frames affect a frame's f0, and its samples.
  std::int64_t f0_left() const { return f0_left_; }
  std::int64_t f0_right() const { return f0_convs_.front().kernel() - 1; }
  std::int64_t decoder_right() const { return conv_pre_.kernel(); }

private:
  struct folded {
    tensor_map weights; ///< with weight norm folded in
  };
  hift_causal(const folded& from, hift_config config);

  hift_trunk trunk_;
  padded_conv conv_pre_;
  std::vector<padded_conv> f0_convs_;
  linear f0_out_;
  std::int64_t f0_left_ = 0;
};

} // namespace parley::inference::speech
