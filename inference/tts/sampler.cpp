#include "inference/tts/sampler.hpp"

#include "inference/kernels/draw.hpp"
#include "inference/temperature.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace parley::inference::speech {
namespace {

constexpr float impossible = -std::numeric_limits<float>::infinity();

/// The largest score; throws if none is finite or one is NaN.
float largest(std::span<const float> scores) {
  const auto [top, sane] = cpu::find_peak(scores);
  if (!sane || !std::isfinite(top)) throw std::runtime_error("the logits of speech tokens are not numbers");
  return top;
}

/// Counts, not presence: a token seen twice is penalised twice (modeling_minicpmo.py:4819-4841).
void penalise(std::vector<float>& scores, std::span<const std::int64_t> previous, const tts_sampling& rules) {
  const auto recent =
      previous.last(std::min(previous.size(), static_cast<std::size_t>(std::max(0, rules.penalty_window))));
  for (auto it = recent.begin(); it != recent.end(); ++it) {
    if (std::find(recent.begin(), it, *it) != it) continue;
    const auto count = std::count(recent.begin(), recent.end(), *it);
    const auto factor = std::pow(rules.repetition_penalty, static_cast<float>(count));
    auto& score = scores[static_cast<std::size_t>(*it)];
    score = score < 0 ? score * factor : score / factor;
  }
}

/// Keeps the most likely tokens that together have top_p, and of those the top_k most likely; never fewer than three.
void narrow(std::vector<float>& scores, const tts_sampling& rules) {
  const auto most = largest(scores);
  const auto total = cpu::sum_of_exponentials(scores, most);

  auto count = scores.size();
  if (rules.top_k > 0) count = std::min(count, static_cast<std::size_t>(std::max(rules.top_k, tts_min_candidates)));
  std::vector<float> best(count);
  std::partial_sort_copy(scores.begin(), scores.end(), best.begin(), best.end(), std::greater<>());

  double likelier = 0;
  std::size_t kept = 0;
  while (kept < count && (kept < tts_min_candidates || likelier / total < rules.top_p))
    likelier += std::exp(static_cast<double>(best[kept++] - most));
  const auto threshold = best[kept - 1];
  for (auto& score : scores)
    if (score < threshold) score = impossible;
}

} // namespace

void tts_probabilities(std::span<const float> logits, std::span<const std::int64_t> previous, const tts_sampling& rules,
                       std::int64_t banned, std::vector<float>& probabilities) {
  auto& scores = probabilities;
  scores.assign(logits.begin(), logits.end());
  if (!takes_the_likeliest(rules.temperature))
    for (auto& score : scores) score /= rules.temperature;
  largest(scores); // checks for NaN before sorting
  if (!previous.empty()) {
    penalise(scores, previous, rules);
    if (rules.narrow) narrow(scores, rules);
  }
  if (banned >= 0) scores[static_cast<std::size_t>(banned)] = impossible;
  const auto total = cpu::exponentials(scores, largest(scores), scores.data());
  const auto scale = static_cast<float>(1 / total);
  for (auto& score : scores) score *= scale;
}

std::int64_t tts_draw(std::span<const float> probabilities, double u) {
  return static_cast<std::int64_t>(cpu::draw(probabilities, u).index);
}

double tts_margin(std::span<const float> probabilities, double u, std::int64_t sampled) {
  const auto total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  const auto below = std::accumulate(probabilities.begin(), probabilities.begin() + sampled, 0.0) / total;
  const auto above = below + static_cast<double>(probabilities[static_cast<std::size_t>(sampled)]) / total;
  return std::min(std::abs(u - below), std::abs(above - u));
}

std::int64_t tts_likeliest(std::span<const float> probabilities) {
  return std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin();
}

} // namespace parley::inference::speech
