#pragma once

#include "inference/llm/qwen3.hpp"

#include <filesystem>
#include <vector>

namespace parley::inference::verify {

/// How much two language models agree, over all rows of some prompts.
struct agreement {
  std::int64_t rows = 0;
  std::int64_t same_top = 0;   ///< rows with the same most likely token
  std::int64_t clear_rows = 0; ///< rows where the exact model's most likely token leads by more than `clear_lead`
  std::int64_t same_clear = 0; ///< how many of these agree
  double divergence = 0;       ///< mean Kullback-Leibler divergence for the other model's next token, in nats
};

/// In natural logarithms of probabilities.
constexpr double clear_lead = 0.1;

/// Prompts and answers as token sequences: those in a folder of thinker goldens, or of a JSON file with lists of ids.
std::vector<std::vector<token_id>> recorded_prompts(const std::filesystem::path& model,
                                                    const std::filesystem::path& recorded);

/// Runs both models over each prompt as a whole. They must have the same vocabulary.
agreement compare(const llm::qwen3& exact, const llm::qwen3& other, const std::vector<std::vector<token_id>>& prompts);

} // namespace parley::inference::verify
