#pragma once

#include "inference/formats/checkpoint.hpp"
#include "inference/formats/model_config.hpp"
#include "inference/text/tokenizer.hpp"

#include <ATen/core/Tensor.h>

#include <span>

namespace parley::inference::llm {

/// What the language model passes to the talker (docs/model/thinker.md 5.5, 6.3): a row for each token of the reply,
/// made from the token and the hidden state after it was fed.
class tts_condition {
public:
  /// `w` is the view of "tts."; all rows below have its dtype and device. Throws std::runtime_error if a weight is
  /// missing.
  tts_condition(const tts_bridge_config& config, const weights& w);

  /// Duplex: rows of the reply, always normalised, then the <|audio_bos|> row: [n + 1, tts hidden]. `hidden` [n, LLM
  /// hidden], here and below, has one row per id; it is unused if there are no ids.
  at::Tensor duplex(std::span<const token_id> ids, const at::Tensor& hidden) const;

  /// Chat: rows of the spoken part, then text end and <|audio_bos|>: [n + 2, tts hidden].
  at::Tensor chat(std::span<const token_id> ids, const at::Tensor& hidden) const;

  /// emb_text[ids] + projector_semantic(hidden), without end marks: [n, tts hidden].
  at::Tensor rows(std::span<const token_id> ids, const at::Tensor& hidden, bool normalize) const;

private:
  at::Tensor embed(std::span<const token_id> ids) const;

  tts_bridge_config config_;
  at::Tensor text_embedding_, linear1_weight_, linear1_bias_, linear2_weight_, linear2_bias_;
};

} // namespace parley::inference::llm
