#pragma once

#include <string_view>
#include <vector>

namespace parley::inference::text {

/// Cuts valid UTF-8 into the words that BPE works on; concatenated, they are the text. Matches
/// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r
/// \p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r
/// ]*|\s*[\r
/// ]+|\s+(?!\S)|\s+ (docs/model/thinker.md 1), written by hand: linear time, no backtracking.
std::vector<std::string_view> pretokenize(std::string_view text);

} // namespace parley::inference::text
