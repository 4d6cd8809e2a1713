#pragma once

#include "inference/audio/mel_stream.hpp"

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace parley::inference::audio {

/// Where the log spectrum is clipped (docs/model/thinker.md 3.1).
enum class mel_clip {
  dynamic, ///< 8 decades below the loudest frame
  floor    ///< 1e-10: what the reference uses after a short stream, by a defect
};

/// Log-mel features of 16 kHz mono sound (docs/model/thinker.md 3.1-3.3). Features are float32 [frames, bins], on the
/// CPU. Stateless after construction; one object serves all sessions. Precondition: samples are finite and in [-1, 1].
class mel_extractor {
public:
  /// `bins`: 80 in MiniCPM-o 4.5. The transforms run on `device`.
  explicit mel_extractor(int bins, at::Device device = at::kCPU);

  int bins() const { return bins_; }

  /// Slaney filter bank, float32 [n_fft / 2 + 1, bins].
  const at::Tensor& filters() const { return filters_; }

  /// Whole clips (3.2), of one or several sessions, in one batched transform. Each clip is cut into pieces of 30 s, and
  /// each piece is treated as if padded with zeros to 30 s; of each piece, the first ceil(samples / hop) frames are
  /// returned. An empty clip has no pieces.
  std::vector<std::vector<at::Tensor>> offline(std::span<const std::span<const float>> clips,
                                               mel_clip clip = mel_clip::dynamic) const;
  std::vector<at::Tensor> offline(std::span<const float> clip, mel_clip level = mel_clip::dynamic) const;

  /// One append to a session's stream.
  struct stream_input {
    mel_stream* stream;             ///< distinct within a call
    std::span<const float> samples; ///< 16 kHz
  };
  struct stream_output {
    at::Tensor mel; ///< [emitted frames, bins]; undefined when not enough is stable for a chunk
    mel_stream_info info;
  };

  /// Appends to each stream and emits at most one chunk per stream (3.3), in one batched transform for each of the CPU's
  /// threads. The caller appends `next_need()` samples at a time.
  std::vector<stream_output> stream(std::span<const stream_input> inputs) const;

private:
  /// One thread's part of it.
  std::vector<stream_output> stream_some(std::span<const stream_input> inputs) const;

  /// float32 [n][n_fft] windows → float32 [n, bins] mel power on the CPU.
  at::Tensor mel_power(const std::vector<float>& windows) const;

  int bins_;
  at::Tensor window_;
  at::Tensor filters_;
};

} // namespace parley::inference::audio
