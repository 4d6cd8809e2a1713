#include "inference/duplex/unit_cost.hpp"

#include "inference/audio/mel_stream.hpp"
#include "inference/audio/projector.hpp"

namespace parley::inference::duplex {

conversation::unit_cost unit_cost_of(const model_config& model) {
  constexpr int unit_marks = 4;    // <unit>, a forced <|turn_eos|>, the terminator and </unit>
  constexpr int picture_marks = 2; // one before and one after a picture's rows
  const int frames = audio::mel_stream_config{}.chunk_samples() / audio::mel_hop_samples;
  const auto sound = static_cast<int>(audio::audio_tokens(frames, model.audio.pool_step));
  return {unit_marks + sound, picture_marks + model.vision.query_num, model.vision.slice_mode};
}

} // namespace parley::inference::duplex
