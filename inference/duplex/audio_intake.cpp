#include "inference/duplex/audio_intake.hpp"

#include <algorithm>

namespace parley::inference::duplex {

bool audio_intake::append(std::span<const float> samples, const audio::mel_stream& stream) {
  buffer_.insert(buffer_.end(), samples.begin(), samples.end());
  if (chunks_ == 0) {
    auto first = static_cast<std::size_t>(stream.config.first_chunk_ms) * (audio::sample_rate / 1000);
    if (buffer_.size() < first) buffer_.insert(buffer_.begin(), first - buffer_.size(), 0.0F);
  }
  return static_cast<int>(buffer_.size()) >= stream.next_need();
}

std::span<const float> audio_intake::chunk(const audio::mel_stream& stream) const {
  return std::span(buffer_).first(static_cast<std::size_t>(stream.next_need()));
}

void audio_intake::consume(const audio::mel_stream_config& cut) {
  // If the first chunk was not the first step, it consumes as few samples as a later chunk: the rest comes twice.
  auto used = chunks_ == 0 ? cut.first_samples() : cut.chunk_samples();
  buffer_.erase(buffer_.begin(), buffer_.begin() + std::min<std::ptrdiff_t>(used, std::ssize(buffer_)));
  ++chunks_;
}

} // namespace parley::inference::duplex
