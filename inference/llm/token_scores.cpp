#include "inference/llm/token_scores.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace parley::inference::llm {

token_score score(std::span<const float> logits, token_id chosen, int most, const tokenizer& tokens) {
  constexpr auto impossible = -std::numeric_limits<float>::infinity();
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const auto each : logits) sum += std::exp(each - largest);
  const double all = largest + std::log(sum);
  const auto chance = [&](token_id id) {
    return token_chance{std::string(tokens.bytes(id)), logits[static_cast<std::size_t>(id)] - all};
  };
  token_score out{chance(chosen)};
  std::vector<token_id> ids(logits.size());
  for (auto i = std::size_t{0}; i < ids.size(); ++i) ids[i] = static_cast<token_id>(i);
  const auto better = [&](token_id a, token_id b) {
    const auto x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
  };
  const auto count = std::min<std::ptrdiff_t>(most, std::ssize(ids));
  std::partial_sort(ids.begin(), ids.begin() + count, ids.end(), better);
  for (auto i = std::ptrdiff_t{0}; i < count; ++i)
    if (logits[static_cast<std::size_t>(ids[static_cast<std::size_t>(i)])] != impossible)
      out.likeliest.push_back(chance(ids[static_cast<std::size_t>(i)]));
  return out;
}

} // namespace parley::inference::llm
