#pragma once

#include "inference/thinker.hpp"
#include "inference/vision/pieces.hpp"

#include <span>

namespace parley::inference::duplex {

/// All pieces of some pictures, in the order in which their rows lie in a prompt.
std::vector<const vision::patch_grid*> pieces_of(std::span<const vision::sliced_picture> pictures);

/// Rows of the LLM's input for the frames of a unit (THINKER.md 5.2): each piece between its marks, no ids, no
/// newlines. `seen` [pieces, query_num, hidden]: what `vision::sight::see` made of `pieces_of(frames)`. At least one
/// frame. Gives [pieces * (query_num + 2), hidden], of the language model's dtype.
at::Tensor frame_rows(const thinker& model, std::span<const vision::sliced_picture> frames, const at::Tensor& seen);

} // namespace parley::inference::duplex
