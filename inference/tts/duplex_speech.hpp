#pragma once

#include "inference/quirks.hpp"
#include "inference/random.hpp"
#include "inference/speech/speech_driver.hpp"
#include "inference/tts/speech_models.hpp"
#include "inference/tts/turn.hpp"

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

namespace parley::inference::speech {

/// One duplex session's voice, unit by unit from the thinker's words to sound (docs/model/talker.md 4.2 and 5, B). The
/// calls for a unit:
///   begin_unit → while (choosing) tts_advance → while (next_window) token2wav::run, take_sound → end_unit,
/// where the caller may batch each step with other sessions. Holds nothing of a turn after its end or a `cut`.
class duplex_speech {
public:
  /// `models` must outlive this. `draws` chooses tokens; `noise` is for vocoders that need new noise in each call.
  duplex_speech(const speech_models& models, std::shared_ptr<const voice> speaker, tts_sampling sampling,
                std::shared_ptr<random_source> draws, std::shared_ptr<random_source> noise, quirks how = {});

  /// `condition` float32 [n, width]: the unit's words as made by `llm::tts_condition::duplex`. `ends`: the unit ends
  /// the turn.
  void begin_unit(at::Tensor condition, bool ends);

  /// Forces tokens of the unit that were chosen before (`tts_turn::force`); call after `begin_unit`.
  void force(std::span<const std::int64_t> tokens) { tokens_.force(tokens); }

  bool choosing() const { return tokens_.running(); }
  tts_step step() { return {&tokens_, draws_.get()}; }

  /// The next call to make for this session; none if the unit's sound is complete or tokens are still being chosen.
  std::optional<token2wav::job> next_window();

  /// Takes the result of that call: float32 [n] on the CPU.
  void take_sound(at::Tensor samples);

  /// The unit's sound, 24 kHz; empty if there are too few tokens so far. After the turn's last unit everything is
  /// reset. A turn's first sound is shorter than a second, because the vocoder holds back the end of each sound until
  /// the next, a second later. So if the turn goes on, silence is put in front to make it a full second: a client that
  /// plays it at once hears no gap.
  std::vector<float> end_unit();

  /// The unit's number of speech tokens, as soon as it is certain. In the middle of a turn every unit has the same
  /// number, so it is known from the start; elsewhere the model may stop earlier, so it is known once all are chosen.
  std::optional<std::size_t> unit_tokens() const;

  /// Whether that many tokens give sound in this unit, rather than wait for the next unit's. Call before the first
  /// `next_window`.
  bool will_sound() const;

  /// The state to which a failed unit is taken back.
  struct mark {
    tts_turn tokens;
    duplex_windows windows;
    token2wav::stream stream;
    bool turn_sounds;
  };
  mark remember() const { return {tokens_, windows_, stream_, turn_sounds_}; }
  void restore(mark before);

  /// Interruption: drops the unit, its sound, and the rest of the turn.
  void cut();

  /// Between turns, only the voice is kept.
  bool turn_is_open() const { return tokens_.begun() || tokens_.running(); }

  const tts_turn& tokens() const { return tokens_; }

private:
  void forget_unit();
  void forget_sound();

  const speech_models* models_;
  std::shared_ptr<const voice> voice_;
  quirks quirks_;
  std::shared_ptr<random_source> draws_, noise_;
  tts_turn tokens_;
  duplex_windows windows_;
  token2wav::stream stream_;
  std::vector<window_call> calls_;
  std::size_t next_call_ = 0;
  tts_limits limits_;
  std::vector<at::Tensor> sound_;
  bool ends_ = false, planned_ = true;
  bool turn_sounds_ = false; ///< some sound of the turn has been sent
};

} // namespace parley::inference::speech
