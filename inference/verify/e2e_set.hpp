#pragma once

#include "inference/thinker.hpp"
#include "inference/tts/condition.hpp"
#include "inference/tts/speech_models.hpp"
#include "inference/verify/golden_set.hpp"
#include "inference/verify/report.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <memory>
#include <string>

namespace parley::inference::verify {

/// Tolerances of mel and samples, for `golden_error` (docs/model/end_to_end.md). Words have the thinker's tolerance.
namespace e2e_tolerance {
inline constexpr double mel = 1e-4, sound = 1.5e-3;
}

/// What the replay of whole conversations needs: both halves of a model, and the recorded noise.
class e2e_set {
public:
  /// Loads the model.
  explicit e2e_set(golden_set& files);

  golden_set& files() { return files_; }
  const thinker& model() const { return model_; }
  const llm::tts_condition& words() const { return words_; }
  const speech::speech_models& speech() const { return speech_; }

  /// A recorded clip by its name, or a WAV file of the model folder by its path; 16 kHz.
  std::vector<float> voice_clip(const std::string& name);

  /// The same clip as a voice for speaking; prepared once.
  std::shared_ptr<const speech::voice> voice(const std::string& name);

private:
  golden_set& files_;
  thinker model_;
  llm::tts_condition words_;
  speech::speech_models speech_;
  std::map<std::string, std::shared_ptr<const speech::voice>> voices_;
};

/// Compares what the voice's networks extracted with `voice_tokens` and `voice_mel_rows` of `recorded` and with the
/// tensor `spk_emb`.
void check_voice(const speech::voice& mine, const nlohmann::json& recorded, const safetensors_file& golden,
                 case_check& check);

/// Replays all whole conversations in the folder. The kinds, by the contents of a file:
void replay_e2e(golden_set& files, report& out);
void replay_e2e_duplex(e2e_set& set, const std::string& stem, report& out);
void replay_e2e_stream(e2e_set& set, const std::string& stem, report& out);
void replay_e2e_answer(e2e_set& set, const std::string& stem, report& out);

} // namespace parley::inference::verify
