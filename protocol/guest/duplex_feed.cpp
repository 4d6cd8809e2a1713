#include "protocol/guest/duplex_feed.hpp"

#include "protocol/limits.hpp"
#include "protocol/media/pcm.hpp"
#include "protocol/media/picture.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace parley::protocol::guest {

std::size_t duplex_feed::hear(std::span<const float> samples) {
  waiting_.insert(waiting_.end(), samples.begin(), samples.end());
  const auto most = most_units_ * unit;
  if (waiting_samples() <= most) return 0;
  const auto dropped = (waiting_samples() - most + unit - 1) / unit;
  take(dropped * unit);
  return dropped;
}

/// Removes samples at the front; what has been taken is moved away now and then.
void duplex_feed::take(std::size_t samples) {
  taken_ += samples;
  if (taken_ < waiting_.size() && taken_ < 4 * unit) return;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(taken_));
  taken_ = 0;
}

void duplex_feed::show(image_file picture) {
  pictures_.push_back(std::move(picture));
  if (pictures_.size() > max_frames) pictures_.pop_front();
}

bool duplex_feed::tell(conversation::role who, std::string text) {
  if (text.empty() || told_bytes_ + text.size() > max_context_bytes || context_.size() == max_context_messages)
    return false;
  told_bytes_ += text.size();
  context_.push_back({who, std::move(text)});
  return true;
}

void duplex_feed::answered() {
  if (answered_ < sent_ / unit) ++answered_;
  if (answered_ > told_at_ && context_.empty()) told_bytes_ = 0;
}

std::optional<append_event> duplex_feed::next(bool speaking) {
  append_event out;
  if (!context_.empty() && !speaking) {
    told_at_ = sent_ / unit;
    out.context = std::exchange(context_, {});
    return out;
  }
  const std::size_t wanted = unit - sent_ % unit;
  const bool full = waiting_samples() >= wanted && sent_ / unit < answered_ + most_in_flight;
  // A session makes a whole unit of a short first append, so there is nothing to break off before it.
  const bool urgent = force_ && waiting_samples() > 0 && sent_ > 0;
  if (!full && !urgent) return std::nullopt;
  const auto size = std::min(wanted, waiting_samples());
  sent_ += size;
  out.frames.assign(std::make_move_iterator(pictures_.begin()), std::make_move_iterator(pictures_.end()));
  pictures_.clear();
  out.force_listen = std::exchange(force_, false);
  const auto next = std::span(waiting_).subspan(taken_, size);
  out.samples = clamped(std::vector<float>(next.begin(), next.end()));
  take(size);
  return out;
}

void duplex_feed::begin() {
  sent_ = 0;
  answered_ = 0;
  force_ = false;
  context_.clear();
  told_bytes_ = told_at_ = 0;
  if (pictures_.size() > 1) pictures_.erase(pictures_.begin(), pictures_.end() - 1);
}

void duplex_feed::keep_last(std::size_t samples) {
  if (waiting_samples() > samples) take(waiting_samples() - samples);
}

} // namespace parley::protocol::guest
