#pragma once

#include "inference/vocoder/hift_original.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// Streams the original vocoder: vocodes the last eight frames again with each chunk and cross-fades
/// (docs/model/talker.md 9). One object serves all sessions; each has a `state`. Tensors are float32.
class legacy_vocoder {
public:
  struct state {
    at::Tensor mel;    ///< [1, bins, <= 8]
    at::Tensor source; ///< [1, 1, n]
    at::Tensor speech; ///< [1, n], the samples from which the next chunk fades over
  };

  static constexpr std::int64_t overlap_frames = 8;

  explicit legacy_vocoder(std::shared_ptr<const hift_original> network) : network_(std::move(network)) {}

  struct job {
    state* session;
    at::Tensor mel;   ///< [1, bins, frames], new frames; may be empty in a final call
    at::Tensor noise; ///< [1, (cached + new frames) * frame_samples, harmonics], Gaussian; see `noise_samples`
    bool final = false;
  };

  /// Jobs with equal numbers of frames share a call of the network. Returns the new samples of each, float32 [1, n]. Unless
  /// final, the samples of a stream's last eight frames are held back.
  std::vector<at::Tensor> stream(std::span<const job> jobs) const;

  std::int64_t noise_samples(const state& session, std::int64_t fresh_frames) const;
  const hift_original& network() const { return *network_; }

private:
  std::shared_ptr<const hift_original> network_;
};

} // namespace parley::inference::speech
