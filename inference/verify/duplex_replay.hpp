#pragma once

#include "inference/decoding/unit_decoder.hpp"
#include "inference/duplex/audio_intake.hpp"
#include "inference/duplex/window.hpp"
#include "inference/llm/sampling.hpp"
#include "inference/thinker.hpp"
#include "inference/verify/recorded_draws.hpp"

#include <nlohmann/json.hpp>

namespace parley::inference::verify {

/// One duplex session, driven step by step as the reference drives it.
class duplex_replay {
public:
  duplex_replay(const thinker& model, const nlohmann::json& capability);

  /// docs/model/thinker.md 5.1; `voice` at 16 kHz, empty = none.
  void prepare(std::span<const token_id> prefix, std::span<const float> voice, std::span<const token_id> suffix);

  /// docs/model/thinker.md 5.2; false if there was nothing to see or hear, or not enough sound.
  bool prefill(std::span<const float> samples, std::span<const vision::sliced_picture> frames = {});

  /// docs/model/thinker.md 5.3 with the recorded random numbers.
  void generate(const nlohmann::json& arguments, const nlohmann::json& decode_calls);

  /// Ends the unit and slides the window (docs/model/thinker.md 5.3, 5.6).
  void finalize();

  struct decode_call {
    token_id decoded;
    std::vector<llm::draw_record> draws;
  };

  llm::kv_cache cache;
  audio::encoder_cache encoder;
  duplex::audio_intake intake;
  duplex::unit_decoder decoder;
  duplex::window window;
  at::Tensor pending_logits;        ///< float32 [vocabulary]; undefined when nothing is pending
  std::vector<token_id> history;    ///< what the repetition penalty sees
  std::vector<decode_call> decodes; ///< in this unit
  std::vector<token_id> tts_ids;    ///< in this unit: tokens with hidden states
  std::vector<bool> tts_ends;
  std::vector<at::Tensor> tts_hidden; ///< [1, hidden] each
  bool generated = false;             ///< this unit is waiting for `finalize`

private:
  at::Tensor feed(const at::Tensor& rows);

  const thinker& model_;
  llm::duplex_sampling_ids ids_;
  duplex::control_tokens control_;
  audio::mel_stream stream_;
};

} // namespace parley::inference::verify
