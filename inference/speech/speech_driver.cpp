#include "inference/speech/speech_driver.hpp"

#include <algorithm>

namespace parley::inference::speech {
namespace {

window_call front(const std::vector<std::int64_t>& buffer, std::size_t n, bool last = false) {
  return {{buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(n)}, last};
}

void drop(std::vector<std::int64_t>& buffer, std::size_t n) {
  buffer.erase(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(n));
}

} // namespace

void duplex_windows::reset() {
  buffer_.assign(window_lookahead, silence_speech_token);
  turn_begins_ = true;
}

std::vector<window_call> duplex_windows::push(std::span<const std::int64_t> tokens, bool last) {
  buffer_.insert(buffer_.end(), tokens.begin(), tokens.end());
  const auto enough = eager_ || turn_begins_ ? smallest_window : window_tokens;
  turn_begins_ = false;
  std::vector<window_call> calls;
  while (buffer_.size() >= enough) {
    const auto n = std::min(window_tokens, buffer_.size());
    calls.push_back(front(buffer_, n));
    drop(buffer_, std::min(window_step, n - window_lookahead));
  }
  if (last) {
    if (!buffer_.empty()) calls.push_back(front(buffer_, buffer_.size(), true));
    reset();
  }
  return calls;
}

std::optional<window_call> turn_windows::push(std::int64_t token) {
  empty_ = false;
  batch_.push_back(token);
  if (batch_.size() < window_step) return std::nullopt;
  buffer_.insert(buffer_.end(), batch_.begin(), batch_.end());
  batch_.clear();
  auto call = front(buffer_, window_tokens);
  drop(buffer_, window_step);
  return call;
}

std::optional<window_call> turn_windows::finish() {
  if (empty_) return std::nullopt;
  buffer_.insert(buffer_.end(), batch_.begin(), batch_.end());
  auto call = front(buffer_, buffer_.size(), true);
  *this = {};
  return call;
}

std::vector<window_call> whole_windows(std::span<const std::int64_t> tokens) {
  std::vector<window_call> calls;
  while (!tokens.empty()) {
    const auto n = std::min(window_tokens, tokens.size());
    const bool last = tokens.size() <= window_tokens;
    calls.push_back({{tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n)}, last});
    if (last) break;
    tokens = tokens.subspan(window_step);
  }
  return calls;
}

} // namespace parley::inference::speech
