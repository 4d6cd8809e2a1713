#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// How speech tokens are drawn (TALKER.md 4).
struct tts_sampling {
  bool greedy = false; ///< the likeliest token of what is left; so is a temperature that `takes_the_likeliest`
  float temperature = 0.8F;
  float repetition_penalty = 1.05F;
  int penalty_window = 16; ///< last tokens that the penalty counts
  bool narrow = true;      ///< apply top_p, then top_k
  float top_p = 0.85F;
  int top_k = 25;                         ///< 0 = off
  std::vector<double>* margins = nullptr; ///< optional: gets, of each draw, how far u was from choosing another token
};

/// What the narrowing never goes below.
inline constexpr int tts_min_candidates = 3;

/// Probabilities of the next token from `logits` [codes], after penalty, narrowing and ban. `previous` are the tokens
/// that the penalty may see; with none, neither penalty nor narrowing applies. `banned` is impossible; -1 bans nothing.
/// Results replace `probabilities`. Throws std::runtime_error when the logits are not numbers.
void tts_probabilities(std::span<const float> logits, std::span<const std::int64_t> previous, const tts_sampling& rules,
                       std::int64_t banned, std::vector<float>& probabilities);

/// The first token whose cumulative probability exceeds u times the total, u in [0, 1). Throws std::runtime_error unless
/// that is positive and finite.
std::int64_t tts_draw(std::span<const float> probabilities, double u);

/// How far u would have to move, in [0, 1), for another token than `drawn`.
double tts_margin(std::span<const float> probabilities, double u, std::int64_t drawn);

/// The first one of equals.
std::int64_t tts_likeliest(std::span<const float> probabilities);

} // namespace parley::inference::speech
