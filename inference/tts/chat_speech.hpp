#pragma once

#include "inference/random.hpp"
#include "inference/speech/speech_driver.hpp"
#include "inference/tts/speech_models.hpp"
#include "inference/tts/turn.hpp"

#include <ATen/core/Tensor.h>

#include <deque>
#include <memory>
#include <optional>

namespace parley::inference::speech {

/// The voice of one chat answer, from the thinker's words to sound (docs/model/talker.md 4.1 and 5, A; 4.3 and 5, C).
/// The calls for an answer:
///   for each group of words: begin_group → while (choosing) tts_advance, absorb
///   finish
/// and in between, whenever there is a window: next_window → token2wav::run. The samples of each window are a delta.
class chat_speech {
public:
  /// `form`: streamed, with groups of words as they come; or whole, with all words as one group. `models` must outlive
  /// this. `draws` chooses tokens; `noise` is for vocoders that need new noise in each call.
  chat_speech(const speech_models& models, std::shared_ptr<const voice> speaker, tts_form form, tts_sampling sampling,
              std::unique_ptr<random_source> draws, std::unique_ptr<random_source> noise);

  /// `condition` float32 [n, width]: the words' rows (`llm::tts_condition::rows`), to which this adds the marks.
  /// `last`: no more words will follow.
  void begin_group(const at::Tensor& condition, bool last);

  /// Forces tokens that were chosen before (`tts_turn::force`).
  void force(std::span<const std::int64_t> tokens) { tokens_.force(tokens); }

  bool choosing() const { return tokens_.running(); }
  tts_step step() { return {&tokens_, draws_.get()}; }

  /// Takes the tokens that the last step chose.
  void absorb();

  /// No more groups will follow: the remaining tokens become the last window.
  void finish();

  bool window_waits() const { return !calls_.empty(); }

  /// The next call to make; assumes that the previous one was made. It points into this object.
  std::optional<token2wav::job> next_window();

  const tts_turn& tokens() const { return tokens_; }

private:
  const speech_models* models_;
  tts_form form_;
  std::unique_ptr<random_source> draws_, noise_;
  tts_turn tokens_;
  turn_windows windows_;
  token2wav::stream stream_;
  std::deque<window_call> calls_;
  window_call current_;
  std::size_t absorbed_ = 0;
};

} // namespace parley::inference::speech
