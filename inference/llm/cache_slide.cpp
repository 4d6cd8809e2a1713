#include "inference/llm/cache_slide.hpp"

#include "base/assert.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace parley::inference::llm {

cache_slide::cache_slide(kv_cache& cache, std::int64_t keep, std::int64_t gap, std::vector<row_move> moves,
                         std::int64_t length, const rope& positions)
    : cache_(cache), keep_(keep), gap_(gap), length_(length), left_(cache.layers()), moves_(std::move(moves)),
      positions_(positions) {
  std::erase_if(moves_, [](const row_move& each) { return each.from == each.to; });
}

int cache_slide::pages() const {
  return turn_ ? cache_.pages_to_take(0) : cache_.pages_to_write(keep_, length_);
}

void cache_slide::advance(std::int64_t layers) {
  PARLEY_ASSERT(left_ > 0 && layers > 0, "a slide goes on until it is done");
  if (!turn_) {
    auto turn = moves_.empty() ? rope::rotation{} : positions_.move(moves_);
    cache_.begin_moves(keep_, length_);
    turn_ = std::move(turn);
  }
  const auto first = cache_.layers() - left_;
  const auto count = moves_.empty() ? left_ : std::min(layers, left_);
  for (auto layer = first; layer < first + count && !moves_.empty(); ++layer) cache_.move_rows(layer, moves_, *turn_);
  left_ -= count;
  if (left_ > 0) return;
  cache_.end_moves(keep_, gap_, length_);
  if (gap_ == 0) cache_.close_gap();
}

} // namespace parley::inference::llm
