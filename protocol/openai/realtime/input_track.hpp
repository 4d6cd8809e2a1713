#pragma once

#include "protocol/openai/realtime/session_config.hpp"
#include "protocol/openai/shared/items.hpp"
#include "protocol/speech/sound.hpp"
#include "protocol/speech/voice_activity.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace parley::protocol::openai::realtime {

/// The user's sound: decoded, cut into turns, and kept until it is committed.
class input_track {
public:
  /// `held`: for what it keeps.
  input_track(std::unique_ptr<speech::speech_detector> detector, base::byte_budget::share held);

  /// What one call heard: samples at 16 kHz, up to an edge if there is one. Valid until the next call.
  struct heard {
    std::span<const float> samples{};
    std::optional<speech::turn_edge> edge{};
  };

  /// Room for an append of so many seconds, to be asked for before it is decoded. False if there is none.
  bool make_room(double seconds);

  /// Decodes an append; then `next` returns it in pieces.
  result<std::size_t> append(std::string_view base64_text, const speech::sound_format& format);

  /// Samples at 16 kHz, which need no decoding.
  void append_samples(std::span<const float> samples);

  /// Silence for time in which the client sent nothing.
  void append_silence(int ms);

  /// The next piece of what was appended; nothing at its end. `turns`: how turns are found; of type none = they aren't.
  /// `onset`: what makes a turn now.
  std::optional<heard> next(const turn_detection& turns, const speech::turn_onset& onset);

  bool in_turn() const { return finder_.in_turn(); }

  /// Milliseconds of the client's sound since the last commit or clear.
  double uncommitted_ms() const { return uncommitted_ms_; }

  /// Milliseconds of sound in the whole session.
  std::int64_t now_ms() const { return finder_.now_ms(); }

  /// Takes the sound that was kept.
  compact_sound commit();
  void clear();

private:
  void forget();
  void keep(std::span<const float> samples, const turn_detection& turns, const std::optional<speech::turn_edge>& edge);

  speech::sound_decoder decoder_;
  speech::turn_finder finder_;
  std::vector<float> waiting_;     ///< appended, not returned by `next` yet
  std::size_t taken_ = 0;          ///< of `waiting_`
  std::vector<std::int16_t> kept_; ///< as in `compact_sound`
  base::byte_budget::share held_;  ///< for `kept_`, and what is on its way there
  double uncommitted_ms_ = 0;
};

} // namespace parley::protocol::openai::realtime
