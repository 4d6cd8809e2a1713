#pragma once

#include "inference/quirks.hpp"
#include "inference/random.hpp"
#include "inference/speech/speech_driver.hpp"
#include "inference/speech/speech_models.hpp"
#include "inference/speech/tts_turn.hpp"

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

namespace parley::inference::speech {

/// One duplex session's voice: unit by unit from the thinker's words to sound (TALKER.md 4.2 and 5, B). A unit goes
///   begin_unit → while (choosing) tts_advance → while (next_window) token2wav::run, take_sound → end_unit,
/// each step of it batched with other sessions' by whoever owns them. Holds nothing of a turn after its end or a `cut`.
class duplex_speech {
public:
  /// `models` outlives this. `draws` chooses tokens, `noise` is for vocoders that need it anew each time.
  duplex_speech(const speech_models& models, std::shared_ptr<const voice> speaker, tts_sampling sampling,
                std::shared_ptr<draw_source> draws, std::shared_ptr<draw_source> noise, quirks how = {});

  /// `condition` float32 [n, width]: the unit's words as `llm::tts_condition::duplex` makes it. `ends`: it ends the
  /// turn.
  void begin_unit(at::Tensor condition, bool ends);

  /// The unit's tokens were chosen once before (`tts_turn::force`); asked for behind `begin_unit`.
  void force(std::span<const std::int64_t> tokens) { tokens_.force(tokens); }

  bool choosing() const { return tokens_.running(); }
  tts_step step() { return {&tokens_, draws_.get()}; }

  /// The next call to make for this session; none when the unit's sound is complete, or tokens are still being chosen.
  std::optional<token2wav::job> next_window();

  /// Takes what that call returned: float32 [n] on the CPU.
  void take_sound(at::Tensor samples);

  /// The unit's sound, 24 kHz; empty when it has too little to say yet. After the turn's last unit everything is reset.
  /// A turn's first sound is shorter than a second, as the vocoder holds the end of each back until the next one, which
  /// comes a second later. In a turn that goes on it is therefore filled up to a whole second, with silence in front:
  /// whoever plays it at once has no gap.
  std::vector<float> end_unit();

  /// How many speech tokens the unit has, as soon as that is certain: from the beginning in the middle of a turn, where
  /// a unit always has as many; when all are chosen where the model may stop earlier.
  std::optional<std::size_t> unit_tokens() const;

  /// Whether that many make sound in this unit, rather than wait for the next one's. Asked before the first
  /// `next_window`.
  bool will_sound() const;

  /// What a unit is taken back to that came to nothing.
  struct mark {
    tts_turn tokens;
    duplex_windows windows;
    token2wav::stream stream;
    bool turn_sounds;
  };
  mark remember() const { return {tokens_, windows_, stream_, turn_sounds_}; }
  void restore(mark before);

  /// Interruption: drops the unit, its sound, and all that is left of the turn.
  void cut();

  /// Between turns nothing is held but the voice.
  bool turn_is_open() const { return tokens_.begun() || tokens_.running(); }

  const tts_turn& tokens() const { return tokens_; }

private:
  void forget_unit();
  void forget_sound();

  const speech_models* models_;
  std::shared_ptr<const voice> voice_;
  quirks quirks_;
  std::shared_ptr<draw_source> draws_, noise_;
  tts_turn tokens_;
  duplex_windows windows_;
  token2wav::stream stream_;
  std::vector<window_call> calls_;
  std::size_t next_call_ = 0;
  tts_limits limits_;
  std::vector<at::Tensor> sound_;
  bool ends_ = false, planned_ = true;
  bool turn_sounds_ = false; ///< some sound of the turn has left
};

} // namespace parley::inference::speech
