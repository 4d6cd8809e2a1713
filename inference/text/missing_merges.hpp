#pragma once

#include "inference/text/tokenizer_files.hpp"

#include <cstddef>

namespace parley::inference::text {

/// Completes a list of merges that is shorter than the vocabulary requires, like the published `merges.txt`. Assumes a
/// vocabulary whose ids are ranks: a token's merge joins the two parts that are left after merging its text with only
/// the tokens below its own id. Added tokens need no merge. Changes nothing if none is missing, or if the existing
/// merges do not make tokens in the order of their ids, because then ids are not ranks. Returns the number of merges
/// added.
std::size_t add_missing_merges(tokenizer_files& files);

} // namespace parley::inference::text
