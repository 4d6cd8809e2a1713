#include "inference/audio/mel_stream.hpp"

namespace parley::inference::audio {

namespace {

int whole_frames(int milliseconds) {
  return milliseconds * (sample_rate / 1000) / mel_hop_samples * mel_hop_samples;
}

} // namespace

int mel_stream_config::first_samples() const {
  return whole_frames(first_chunk_ms);
}
int mel_stream_config::chunk_samples() const {
  return whole_frames(chunk_ms);
}

int mel_stream::next_need() const {
  return chunks == 0 ? config.first_samples() : config.chunk_samples();
}

} // namespace parley::inference::audio
