#include "protocol/call/playout.hpp"

#include <algorithm>
#include <utility>

namespace parley::protocol::call {

void playout::add(pcm sound) {
  if (sound && !sound->empty()) waiting_.push_back(std::move(sound));
}

void playout::clear() {
  waiting_.clear();
  taken_ = 0;
}

std::optional<playout::frame_out> playout::take(time_point now) {
  if (!since_) since_ = now;
  if (empty()) {
    if (due_ && now >= *due_) due_.reset(); // what was sent has been heard
    return std::nullopt;
  }
  if (due_ && now < *due_) return std::nullopt;
  frame_out out{};
  out.begins = !due_;
  if (!due_)
    due_ = now;
  else
    due_ = std::max(*due_, now - most_late);
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(*due_ - *since_).count();
  const auto at = static_cast<std::uint32_t>(elapsed * (rtp_rate / 1000));
  // In a pause of less than a frame between two frames, and in one of ours, the stream is as it would be without it.
  if (static_cast<std::int32_t>(at - timestamp_) > 0 && out.begins) timestamp_ = at;
  out.timestamp = timestamp_;
  timestamp_ += frame_time;
  *due_ += frame;
  tail_ = waiting_.empty() ? tail_ - 1 : tail_frames;
  frame_.clear();
  while (frame_.size() < frame_samples && !waiting_.empty()) {
    const auto& first = *waiting_.front();
    const auto count = std::min(frame_samples - frame_.size(), first.size() - taken_);
    frame_.insert(frame_.end(), first.begin() + static_cast<std::ptrdiff_t>(taken_),
                  first.begin() + static_cast<std::ptrdiff_t>(taken_ + count));
    taken_ += count;
    if (taken_ < first.size()) continue;
    waiting_.pop_front();
    taken_ = 0;
  }
  frame_.resize(frame_samples);
  out.samples = frame_;
  return out;
}

} // namespace parley::protocol::call
