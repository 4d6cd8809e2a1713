#pragma once

#include "inference/formats/checkpoint.hpp"
#include "inference/formats/model_config.hpp"
#include "inference/tts/condition.hpp"
#include "inference/tts/speech_models.hpp"

#include <memory>
#include <span>
#include <vector>

namespace parley::inference {

/// The talker, loaded once and shared by all sessions: turns the language model's hidden states into speech tokens, and
/// those into sound. Its networks run in float32 or mixed, whatever the thinker uses. Holds no session state.
class talker {
public:
  /// `dtype`: that of the thinker's hidden states. Throws std::runtime_error naming the file that is missing or wrong.
  talker(const checkpoint& weights, const model_config& config, const quirks& how, at::ScalarType dtype,
         at::Device device, config::speech_dtype networks = config::speech_dtype::float32);

  /// The talker of a model folder. Null, after logging what is missing, if the folder has none or a network of the
  /// voice contains an unknown operator: sessions are then answered with text. Throws like the constructor for parts
  /// that exist but are wrong.
  static std::shared_ptr<const talker> open(const checkpoint& weights, const model_config& config, const quirks& how,
                                            at::ScalarType dtype, at::Device device,
                                            config::speech_dtype networks = config::speech_dtype::float32);

  /// The words of a duplex unit, each with its hidden state [1, LLM hidden], in the form that `speech::duplex_speech`
  /// expects: float32 [ids + 1, tts hidden].
  at::Tensor unit(std::span<const token_id> ids, std::span<const at::Tensor> hidden) const;

  /// A group of one or more words of a chat answer, in the form that `speech::chat_speech` expects: float32 [ids, tts
  /// hidden].
  at::Tensor words(std::span<const token_id> ids, std::span<const at::Tensor> hidden) const;

  const speech::speech_models& models() const { return models_; }
  const speech::token2wav& sound() const { return *models_.sound; }

private:
  speech::speech_models models_;
  llm::tts_condition condition_;
  bool normalize_;
};

} // namespace parley::inference
