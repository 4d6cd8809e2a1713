#include "inference/vocoder/kv_history.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace parley::inference::speech {

void kv_history::push_front(at::Tensor piece) {
  pieces_.insert(pieces_.begin(), std::move(piece));
}

void kv_history::keep_ends(std::int64_t front, std::int64_t back) {
  std::vector<at::Tensor> kept;
  const auto behind = rows() - back; // the first of the last `back` rows
  std::int64_t begin = 0;
  for (const auto& piece : pieces_) {
    const auto n = piece.size(2);
    const auto head = std::clamp<std::int64_t>(front - begin, 0, n);
    const auto tail = n - std::max(head, std::clamp<std::int64_t>(behind - begin, 0, n));
    if (head + tail == n)
      kept.push_back(piece);
    else {
      if (head > 0) kept.push_back(piece.narrow(2, 0, head));
      if (tail > 0) kept.push_back(piece.narrow(2, n - tail, tail));
    }
    begin += n;
  }
  pieces_ = std::move(kept);
}

std::int64_t kv_history::rows() const {
  std::int64_t sum = 0;
  for (const auto& piece : pieces_) sum += piece.size(2);
  return sum;
}

at::Tensor kv_history::joined() const {
  return pieces_.size() == 1 ? pieces_.front() : at::cat(pieces_, 2);
}

at::Tensor stacked(const std::vector<kv_history>& blocks) {
  std::vector<at::Tensor> all;
  for (const auto& block : blocks) all.push_back(block.joined());
  return at::stack(all);
}

} // namespace parley::inference::speech
