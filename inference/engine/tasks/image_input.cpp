#include "inference/engine/tasks/image_input.hpp"

#include "base/assert.hpp"
#include "inference/duplex/frame_rows.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace parley::inference {

void image_input::count() {
  PARLEY_ASSERT(any() && sliced() && !has_problem(), "pictures are counted once they are sliced");
  pieces_ = static_cast<int>(duplex::pieces_of(order_->pictures).size());
}

std::vector<const vision::patch_grid*> image_input::next_pieces(std::int64_t most) const {
  PARLEY_ASSERT(any() && left() > 0, "pieces are left to be seen");
  const auto all = duplex::pieces_of(order_->pictures);
  const auto begin = all.begin() + seen_pieces_;
  return {begin, begin + std::min(most, left())};
}

bool image_input::add(at::Tensor rows) {
  PARLEY_ASSERT(rows.size(0) <= left(), "no piece is seen twice");
  seen_pieces_ += rows.size(0);
  seen_.push_back(std::move(rows));
  return left() == 0;
}

at::Tensor image_input::rows() const {
  return at::cat(seen_);
}

void image_input::forget() {
  order_.reset();
  seen_.clear();
}

} // namespace parley::inference
