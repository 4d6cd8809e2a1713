#pragma once

#include "inference/thinker.hpp"
#include "inference/vision/pieces.hpp"

#include <span>

namespace parley::inference::duplex {

/// All pieces of some pictures, in the order of their rows in a prompt.
std::vector<const vision::patch_grid*> pieces_of(std::span<const vision::sliced_picture> pictures);

/// LLM input rows for the frames of a unit (docs/model/thinker.md 5.2): each piece between its marks, without ids and
/// newlines. `seen` [pieces, query_num, hidden] is the result of `vision::sight::see` for `pieces_of(frames)`. Needs at
/// least one frame. Returns [pieces * (query_num + 2), hidden] in the language model's dtype.
at::Tensor frame_rows(const thinker& model, std::span<const vision::sliced_picture> frames, const at::Tensor& seen);

} // namespace parley::inference::duplex
