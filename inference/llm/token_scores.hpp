#pragma once

#include "inference/text/tokenizer.hpp"
#include "inference/vocabulary.hpp"

#include <span>

namespace parley::inference::llm {

/// How likely `chosen` was by a row of logits as the model made it, and the `most` likeliest tokens, of equally likely
/// ones the first. Impossible tokens are left out.
token_score score(std::span<const float> logits, token_id chosen, int most, const tokenizer& tokens);

} // namespace parley::inference::llm
