#include "net/channel/frame_buffer.hpp"

#include <algorithm>
#include <utility>

namespace parley::net {

std::span<char> frame_buffer::prepare(std::size_t expected) {
  if (size_ == 0) return head_;
  if (text_.size() == size_) {
    const std::size_t doubled = size_ + std::min(std::max<std::size_t>(expected, head_.size()), size_);
    const std::size_t size = std::max(doubled, size_ + std::min(expected, trusted));
    text_.resize(size);
  }
  return {text_.data() + size_, text_.size() - size_};
}

void frame_buffer::commit(std::size_t n) {
  if (size_ == 0) text_.assign(head_.data(), n);
  size_ += n;
}

std::string frame_buffer::take() {
  text_.resize(size_);
  size_ = 0;
  return std::exchange(text_, {});
}

void frame_buffer::clear() {
  text_ = {};
  size_ = 0;
}

} // namespace parley::net
