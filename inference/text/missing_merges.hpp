#pragma once

#include "inference/text/tokenizer_files.hpp"

#include <cstddef>

namespace parley::inference::text {

/// Completes a list of merges that is shorter than the vocabulary requires, like that of the published `merges.txt`. In
/// a vocabulary whose ids are ranks, a token's merge is what is left when its text is merged by rank using only tokens
/// below its own id. Added tokens need no merge. Changes nothing if none is missing, or if the existing merges do not
/// make tokens in the order of their ids, because then ids are not ranks. Returns how many were added.
std::size_t add_missing_merges(tokenizer_files& files);

} // namespace parley::inference::text
