#pragma once

#include "inference/checkpoint.hpp"
#include "inference/llm/tts_condition.hpp"
#include "inference/model_config.hpp"
#include "inference/speech/speech_models.hpp"

#include <memory>
#include <span>
#include <vector>

namespace parley::inference {

/// The speaking half of the model, loaded once and shared by all sessions: what turns the language model's hidden
/// states into speech tokens and those into sound. The networks run in float32 whatever the thinker runs in. Holds no
/// session state.
class talker {
public:
  /// `dtype`: of the thinker's hidden states. Throws std::runtime_error naming the file that is missing or wrong.
  talker(const checkpoint& weights, const model_config& config, const quirks& how, at::ScalarType dtype,
         at::Device device);

  /// The speaking half of a model folder; null, with a line in the log that names what is missing, when the folder holds
  /// none, or when a network of the voice holds an operator that is not known: then sessions are answered by text.
  /// Throws as the constructor for what is there and wrong.
  static std::shared_ptr<const talker> open(const checkpoint& weights, const model_config& config, const quirks& how,
                                            at::ScalarType dtype, at::Device device);

  /// The words of a duplex unit, each with its hidden state [1, LLM hidden], as `speech::duplex_speech` wants them:
  /// float32 [ids + 1, tts hidden].
  at::Tensor unit(std::span<const token_id> ids, std::span<const at::Tensor> hidden) const;

  /// A group of words of a chat answer, at least one, as `speech::chat_speech` wants them: float32 [ids, tts hidden].
  at::Tensor words(std::span<const token_id> ids, std::span<const at::Tensor> hidden) const;

  const speech::speech_models& models() const { return models_; }
  const speech::token2wav& sound() const { return *models_.sound; }

private:
  speech::speech_models models_;
  llm::tts_condition condition_;
  bool normalize_;
};

} // namespace parley::inference
