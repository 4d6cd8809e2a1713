#pragma once

#include "inference/kernels/device_graph.hpp"
#include "inference/vocoder/hift_original.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// Streams the original vocoder: vocodes the last eight frames again with each chunk and cross-fades
/// (docs/model/talker.md 9). One object serves all sessions; each has a `state`. Tensors are float32. Not thread-safe.
class legacy_vocoder {
public:
  struct state {
    at::Tensor mel;    ///< [1, bins, <= 8]
    at::Tensor source; ///< [1, 1, n]
    at::Tensor speech; ///< [1, n], the samples from which the next chunk fades over
  };

  static constexpr std::int64_t overlap_frames = 8;

  explicit legacy_vocoder(std::shared_ptr<const hift_original> network);

  struct job {
    state* session;
    at::Tensor mel;   ///< [1, bins, frames], new frames; may be empty in a final call
    at::Tensor noise; ///< see `prepared`
    bool final = false;
  };

  /// Jobs with equal numbers of frames share a call of the network. Returns the new samples of each, float32 [1, n]. Unless
  /// final, the samples of a stream's last eight frames are held back.
  std::vector<at::Tensor> stream(std::span<const job> jobs) const;

  std::int64_t noise_samples(const state& session, std::int64_t fresh_frames) const;

  /// The noise of a job from Gaussian numbers [1, `noise_samples`, harmonics] on the CPU: the same, or for other devices
  /// mixed already, [1, samples], a ninth to upload. Thread-safe.
  at::Tensor prepared(const at::Tensor& gaussian) const;

  const hift_original& network() const { return *network_; }

private:
  /// Jobs with equal numbers of frames, cached ones among them.
  struct group {
    std::int64_t cached = 0; ///< frames
    std::vector<std::size_t> rows;
    at::Tensor mel;           ///< [B, bins, frames]
    at::Tensor noise, source; ///< of all jobs; source is undefined if no frame is cached
  };

  hift_original::result vocode(const group& of) const;
  hift_original::result vocode_by_graph(const group& of) const;

  std::shared_ptr<const hift_original> network_;
  at::Tensor mix_; ///< [harmonics] on the CPU; undefined if the network is there, too
  mutable graph_cache graphs_{32};
};

} // namespace parley::inference::speech
