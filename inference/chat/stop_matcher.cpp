#include "inference/chat/stop_matcher.hpp"

#include "inference/decoding/partial_match.hpp"

#include <algorithm>
#include <utility>

namespace parley::inference::chat {

std::string stop_matcher::push(std::string_view text) {
  ++partial_;
  if (text.empty()) return {};
  waiting_ += text;
  ends_.insert(ends_.end(), std::exchange(partial_, 0), told_ + waiting_.size());
  auto end = std::string::npos;
  auto begin = std::string::npos;
  for (const auto& stop : stops_) {
    const auto at = waiting_.find(stop);
    if (at == std::string::npos) continue;
    if (at + stop.size() < end || (at + stop.size() == end && at < begin)) {
      begin = at;
      end = at + stop.size();
    }
  }
  found_ = begin != std::string::npos;
  return tell(found_ ? begin : waiting_.size() - kept_back());
}

std::string stop_matcher::finish() {
  ends_.insert(ends_.end(), std::exchange(partial_, 0), told_ + waiting_.size());
  return tell(waiting_.size());
}

std::size_t stop_matcher::tokens_told() const {
  return static_cast<std::size_t>(std::ranges::upper_bound(ends_, told_) - ends_.begin());
}

std::string stop_matcher::tell(std::size_t bytes) {
  auto text = waiting_.substr(0, bytes);
  waiting_.erase(0, bytes);
  told_ += bytes;
  return text;
}

/// The longest end of the text that begins a stop string, in bytes.
std::size_t stop_matcher::kept_back() const {
  std::size_t most = 0;
  for (const auto& stop : stops_) most = std::max(most, partial_match(waiting_, stop));
  return most;
}

} // namespace parley::inference::chat
