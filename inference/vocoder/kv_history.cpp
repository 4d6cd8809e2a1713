#include "inference/vocoder/kv_history.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace parley::inference::speech {

void kv_history::push_front(at::Tensor piece) {
  pieces_.insert(pieces_.begin(), std::move(piece));
}

void kv_history::push_back(at::Tensor piece) {
  pieces_.push_back(std::move(piece));
}

void kv_history::keep_ends(std::int64_t front, std::int64_t back) {
  std::vector<at::Tensor> kept;
  const auto behind = rows() - back; // the first of the last `back` rows
  std::int64_t begin = 0;
  for (const auto& piece : pieces_) {
    const auto n = piece.size(axis_);
    const auto head = std::clamp<std::int64_t>(front - begin, 0, n);
    const auto tail = n - std::max(head, std::clamp<std::int64_t>(behind - begin, 0, n));
    if (head + tail == n)
      kept.push_back(piece);
    else {
      if (head > 0) kept.push_back(piece.narrow(axis_, 0, head));
      if (tail > 0) kept.push_back(piece.narrow(axis_, n - tail, tail));
    }
    begin += n;
  }
  pieces_ = std::move(kept);
}

void kv_history::repeat() {
  const auto once = pieces_;
  pieces_.insert(pieces_.end(), once.begin(), once.end());
}

std::int64_t kv_history::rows() const {
  std::int64_t sum = 0;
  for (const auto& piece : pieces_) sum += piece.size(axis_);
  return sum;
}

at::Tensor kv_history::joined() const {
  return pieces_.size() == 1 ? pieces_.front() : at::cat(pieces_, axis_);
}

const at::Tensor& kv_history::join() {
  pieces_ = {joined().contiguous()};
  return pieces_.front();
}

at::Tensor stacked(const std::vector<kv_history>& blocks) {
  std::vector<at::Tensor> all;
  for (const auto& block : blocks) all.push_back(block.joined());
  return at::stack(all);
}

} // namespace parley::inference::speech
