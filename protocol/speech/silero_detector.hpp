#pragma once

#include "protocol/speech/silero/network.hpp"
#include "protocol/speech/voice_activity.hpp"

#include <array>
#include <cstddef>
#include <span>

namespace parley::protocol::speech {

/// By Silero's network, which takes speech for speech and neither noise nor keys for it. It only runs while something is
/// louder than the room and shortly after, so that silence costs nothing. `threshold` is the probability from which on
/// something is speech; once it is, a little less will do. The network believes in speech for a tenth of a second after its
/// end, so a frame that is no louder than the room is never taken for it.
class silero_detector final : public speech_detector {
public:
  bool is_speech(std::span<const float> frame, double threshold) override;

private:
  bool hears_something(std::span<const float> frame);

  silero::network network_;
  loudness_meter room_;
  std::array<float, silero::window> window_{};
  std::size_t filled_ = 0; ///< of `window_`
  int awake_ms_ = 0;       ///< for how long the network still runs
  bool speech_ = false;
};

} // namespace parley::protocol::speech
