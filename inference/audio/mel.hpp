#pragma once

#include "inference/audio/mel_stream.hpp"

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace parley::inference::audio {

/// Log-mel features of 16 kHz mono sound (THINKER.md 3.1-3.3). Features are float32, time first: [frames, bins].
/// Stateless after construction; one object serves all sessions. Samples are in [-1, 1] and finite (the caller's duty).
class mel_extractor {
public:
  explicit mel_extractor(int bins, at::Device device = at::kCPU);

  int bins() const;

  /// Slaney filter bank, float32 [n_fft / 2 + 1, bins], computed in float64.
  const at::Tensor& filters() const;

  /// A whole clip (3.2): cut into pieces of 30 s, each padded with zeros to 30 s and clipped dynamically over the
  /// padded piece; of each the first ceil(samples / hop) frames, on the CPU: [frames, bins] per piece. An empty clip
  /// has no piece.
  std::vector<at::Tensor> offline(std::span<const float> clip) const;

  /// Clips of many sessions; one batched transform per piece round. Same as one at a time.
  std::vector<std::vector<at::Tensor>> offline(std::span<const std::span<const float>> clips) const;

  /// One append to a session's stream.
  struct stream_input {
    mel_stream* stream; ///< the session's own; distinct within a call
    std::span<const float> samples;
  };
  struct stream_output {
    at::Tensor mel; ///< [frames, bins] on the CPU; undefined when nothing is stable enough to be emitted yet
    mel_stream_info info;
  };

  /// Appends to each stream and emits at most one chunk per stream (3.3). One batched transform for all streams.
  /// The caller appends `next_need()` samples at a time.
  std::vector<stream_output> stream(std::span<const stream_input> inputs) const;

private:
  /// float32 [n, n_fft] windows → float32 [n, bins] mel power, on the CPU.
  at::Tensor mel_power(const at::Tensor& frames) const;

  at::Device device_;
  at::Tensor window_;
  at::Tensor filters_;
};

} // namespace parley::inference::audio
