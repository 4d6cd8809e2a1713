#pragma once

#include "inference/audio/mel_stream.hpp"

#include <span>
#include <vector>

namespace parley::inference::duplex {

/// Gathers a session's samples into the chunks that its mel stream wants (docs/model/thinker.md 5.2). A first append of
/// 16 000 samples is padded with silence on the left.
class audio_intake {
public:
  /// Adds samples (16 kHz). Returns false if they do not complete a chunk yet; they then wait.
  bool append(std::span<const float> samples, const audio::mel_stream& stream);

  /// The chunk, `stream.next_need()` samples, once `append` has returned true. Valid until the next `append` or
  /// `consume`.
  std::span<const float> chunk(const audio::mel_stream& stream) const;

  /// Convolved frames of the chunk that are only context (docs/model/thinker.md 3.4).
  int drop_front() const { return chunks_ == 0 ? 0 : 1; }

  /// Call once the chunk has been encoded.
  void consume(const audio::mel_stream_config& cut);

  /// A step without sound. The reference counts it as a chunk, so the next chunk is no longer the first.
  void skip() { ++chunks_; }

  int chunks() const { return chunks_; }
  int waiting_samples() const { return static_cast<int>(buffer_.size()); }

private:
  std::vector<float> buffer_;
  int chunks_ = 0;
};

} // namespace parley::inference::duplex
