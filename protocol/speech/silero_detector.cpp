#include "protocol/speech/silero_detector.hpp"

#include <algorithm>

namespace parley::protocol::speech {
namespace {

constexpr double above_room_db = 3;
constexpr double inaudible_db = -65;
constexpr int awake_for_ms = 600; ///< longer than the pause between two words
constexpr double less = 0.15;     ///< in speech, what the threshold is lowered by

} // namespace

/// Whether it is louder than the room. From then on, for a while, the network has to look at what comes.
bool silero_detector::hears_something(std::span<const float> frame) {
  const auto now = room_.hear(frame);
  const bool loud = now.loud_db > std::max(now.floor_db + above_room_db, inaudible_db);
  awake_ms_ = loud ? awake_for_ms : std::max(0, awake_ms_ - frame_ms);
  return loud;
}

bool silero_detector::is_speech(std::span<const float> frame, double threshold) {
  const bool loud = hears_something(frame), awake = awake_ms_ > 0;
  if (!awake) speech_ = false;
  while (!frame.empty()) {
    const auto piece = frame.first(std::min(frame.size(), window_.size() - filled_));
    std::copy(piece.begin(), piece.end(), window_.begin() + static_cast<std::ptrdiff_t>(filled_));
    filled_ += piece.size();
    frame = frame.subspan(piece.size());
    if (filled_ < window_.size()) break;
    filled_ = 0;
    if (awake) speech_ = network_.step(window_) >= (speech_ ? std::max(threshold - less, 0.01) : threshold);
  }
  return speech_ && loud;
}

} // namespace parley::protocol::speech
