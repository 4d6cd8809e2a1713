#pragma once

#include "protocol/call/opus_stream.hpp"
#include "protocol/events.hpp"
#include "protocol/time_point.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace parley::protocol::call {

/// What a call is yet to hear, cut into frames of 20 ms, of which each is due when the one before it ends: never earlier, so
/// that nothing that may still be taken back is on its way.
class playout {
public:
  static constexpr std::chrono::milliseconds frame{20};

  /// Frames that are overdue, after a pause of ours, are sent at once up to this much; the clock goes on from there.
  static constexpr std::chrono::milliseconds most_late{200};

  /// Silence that is sent after the last sound, so that clients do not go on with it while nothing comes.
  static constexpr int tail_frames = 5;

  /// Samples at 24 kHz, to be heard after all others.
  void add(pcm sound);

  /// Drops what is not sent yet.
  void clear();

  struct frame_out {
    std::span<const float> samples; ///< `frame_samples` of them; valid until the next call
    std::uint32_t timestamp;        ///< of RTP: in silence, too, it goes on with time
    bool begins;                    ///< after silence
  };

  /// The next frame, if it is due. The end of the last one is silence.
  std::optional<frame_out> take(time_point now);

  /// Nothing is to be sent until more is added.
  bool empty() const { return waiting_.empty() && tail_ == 0; }

private:
  std::deque<pcm> waiting_;
  std::size_t taken_ = 0; ///< of the first of them
  int tail_ = 0;          ///< frames of silence that follow
  std::vector<float> frame_;
  std::optional<time_point> due_; ///< of the next frame; none = it is silent
  std::optional<time_point> since_;
  std::uint32_t timestamp_ = 0; ///< of the last frame's end
};

} // namespace parley::protocol::call
