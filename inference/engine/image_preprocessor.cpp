#include "inference/engine/image_preprocessor.hpp"

#include <utility>

namespace parley::inference {

bool image_job::work(const std::function<bool()>& wanted) noexcept {
  try {
    if (troublemaker == files.size()) return true;
    auto sliced = vision::slice_file(*files[troublemaker], max_slice_nums, how, wanted);
    if (!sliced) {
      problem = std::move(sliced.error());
      return true;
    }
    pieces += sliced->pieces.size();
    if (pieces > most_pieces) {
      kind = failure_kind::context_full;
      problem = "the pictures do not fit into the context";
      return true;
    }
    pictures.push_back(*std::move(sliced));
    return ++troublemaker == files.size() || !wanted();
  } catch (...) { // out of memory
    kind = failure_kind::inference;
    problem = "no memory";
    return true;
  }
}

} // namespace parley::inference
