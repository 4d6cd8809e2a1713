#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// How speech tokens are sampled (docs/model/talker.md 4).
struct tts_sampling {
  bool greedy = false; ///< always take the most likely token; so does a temperature that `takes_the_likeliest`
  float temperature = 0.8F;
  float repetition_penalty = 1.05F;
  int penalty_window = 16; ///< how many of the last tokens the penalty counts
  bool narrow = true;      ///< apply top_p, then top_k
  float top_p = 0.85F;
  int top_k = 25;                         ///< 0 = off
  std::vector<double>* margins = nullptr; ///< optional: receives, for each draw, how far u was from choosing another
                                          ///< token
};

/// The minimum number of tokens that top_p and top_k leave.
inline constexpr int tts_min_candidates = 3;

/// Probabilities of the next token from `logits` [codes], after penalty, top_p, top_k and ban. The penalty applies to
/// the tokens in `previous`; if that is empty, top_p and top_k do not apply either. `banned` is impossible; -1 bans
/// nothing. The results replace `probabilities`. Throws std::runtime_error if the logits are NaN.
void tts_probabilities(std::span<const float> logits, std::span<const std::int64_t> previous, const tts_sampling& rules,
                       std::int64_t banned, std::vector<float>& probabilities);

/// The first token whose cumulative probability exceeds u times the total, u in [0, 1). Throws std::runtime_error
/// unless the total is positive and finite.
std::int64_t tts_draw(std::span<const float> probabilities, double u);

/// How far u, in [0, 1), would have to move to choose another token than `sampled`.
double tts_margin(std::span<const float> probabilities, double u, std::int64_t sampled);

/// The most likely token, the first among equals.
std::int64_t tts_likeliest(std::span<const float> probabilities);

} // namespace parley::inference::speech
