#pragma once

#include "protocol/media/resampler.hpp"
#include "protocol/speech/sound.hpp"
#include "protocol/time_point.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace parley::protocol::speech {

/// What the model says, on its way to a client that plays whatever it gets and cannot take it back: frames of 200 ms,
/// each sent when the one before it begins to play, with the words that are spoken in it. Time is an argument.
class paced_speech {
public:
  static constexpr std::chrono::milliseconds frame{200};

  explicit paced_speech(sound_format format);

  /// Words of the sound that comes next.
  void say(std::string_view words) { waiting_words_ += words; }

  /// Samples at 24 kHz. `all_words`: every word so far is spoken in them; otherwise as many as fit, since text is made
  /// faster than its sound.
  void sound(std::span<const float> from_model, bool all_words);

  /// The utterance has ended: what is left of its words belongs to what is left of its sound.
  void end();

  /// Forgets what was not sent.
  void cut();

  struct piece {
    time_point plays_at;
    std::string words{}; ///< empty = none begin in it
    int words_ms = 0;    ///< how long they take
    std::string audio;   ///< base64
  };

  /// The frame to send now; call it until there is none.
  std::optional<piece> next(time_point now);

  /// When `next` has one.
  std::optional<time_point> due() const;

  /// Whether the client still plays, or something waits.
  bool playing(time_point now) const { return !samples_.empty() || (last_end_ && now < *last_end_); }
  std::optional<time_point> last_end() const { return last_end_; }

private:
  struct mark {
    std::size_t at; ///< of all samples of the session
    std::string words;
  };

  void spread(std::string_view words, std::size_t from, std::size_t samples);
  std::size_t made() const { return sent_ + samples_.size(); }

  // From here on, samples are at the client's rate: a resampler gives them in larger and smaller pieces.
  const int rate_;
  const std::size_t frame_size_;
  resampler from_model_;
  sound_encoder encoder_;
  std::string waiting_words_;
  std::deque<float> samples_; ///< not sent yet
  std::deque<mark> marks_;    ///< words not sent yet
  std::size_t sent_ = 0;
  std::optional<time_point> last_end_; ///< when the client has played all that was sent
};

} // namespace parley::protocol::speech
