#pragma once

#include "inference/random.hpp"
#include "inference/speech/speech_driver.hpp"
#include "inference/speech/speech_models.hpp"
#include "inference/speech/tts_turn.hpp"

#include <ATen/core/Tensor.h>

#include <deque>
#include <memory>
#include <optional>

namespace parley::inference::speech {

/// The voice of one chat answer, from the thinker's words to sound (TALKER.md 4.1 and 5, A; 4.3 and 5, C). An answer
/// goes
///   for each group of words: begin_group → while (choosing) tts_advance, absorb
///   finish
/// and in between, as often as there is one: next_window → token2wav::run. Each window's samples are a delta.
class chat_speech {
public:
  /// `form`: streamed, groups of words as they come; whole, all words as one group. `models` outlives this. `draws`
  /// chooses tokens, `noise` is for vocoders that need it anew each time.
  chat_speech(const speech_models& models, std::shared_ptr<const voice> speaker, tts_form form, tts_sampling sampling,
              std::unique_ptr<draw_source> draws, std::unique_ptr<draw_source> noise);

  /// `condition` float32 [n, width]: the words' rows (`llm::tts_condition::rows`); the marks are added here. `last`: no
  /// words will follow.
  void begin_group(const at::Tensor& condition, bool last);

  /// The answer's tokens were chosen once before (`tts_turn::force`).
  void force(std::span<const std::int64_t> tokens) { tokens_.force(tokens); }

  bool choosing() const { return tokens_.running(); }
  tts_step step() { return {&tokens_, draws_.get()}; }

  /// Takes the tokens that the last step chose.
  void absorb();

  /// No group will follow: what waits becomes the last window.
  void finish();

  bool window_waits() const { return !calls_.empty(); }

  /// The next call to make; the one before counts as made. It points into this object.
  std::optional<token2wav::job> next_window();

  const tts_turn& tokens() const { return tokens_; }

private:
  const speech_models* models_;
  tts_form form_;
  std::unique_ptr<draw_source> draws_, noise_;
  tts_turn tokens_;
  turn_windows windows_;
  token2wav::stream stream_;
  std::deque<window_call> calls_;
  window_call current_;
  std::size_t absorbed_ = 0;
};

} // namespace parley::inference::speech
