#pragma once

#include "inference/text/tokenizer_files.hpp"

#include <cstddef>

namespace parley::inference::text {

/// Completes merges that are fewer than the vocabulary makes necessary, as those of the published `merges.txt` are. In
/// a vocabulary whose ids are ranks, a token's merge is what is left when its text is merged by rank, with tokens below
/// its own id alone. Added tokens need no merge. Changes nothing when none is missing, or when the merges that are there
/// do not make tokens in the order of their ids: then ids are no ranks. Returns how many were added.
std::size_t add_missing_merges(tokenizer_files& files);

} // namespace parley::inference::text
