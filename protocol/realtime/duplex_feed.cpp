#include "protocol/realtime/duplex_feed.hpp"

#include "protocol/codec/client_side.hpp"
#include "protocol/media/picture.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace parley::protocol::realtime {

std::size_t duplex_feed::hear(std::span<const float> samples) {
  waiting_.insert(waiting_.end(), samples.begin(), samples.end());
  std::size_t dropped = 0;
  for (; waiting_.size() > most_units_ * unit; ++dropped)
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(unit));
  return dropped;
}

void duplex_feed::show(std::shared_ptr<const std::string> picture) {
  pictures_.push_back(std::move(picture));
  if (pictures_.size() > max_frames) pictures_.pop_front();
}

std::optional<std::string> duplex_feed::next() {
  const std::size_t wanted = unit - sent_ % unit;
  const bool full = waiting_.size() >= wanted && sent_ / unit < answered_ + most_in_flight;
  // A session makes a whole unit of a short first append, so there is nothing to break off before it.
  const bool urgent = force_ && !waiting_.empty() && sent_ > 0;
  if (!full && !urgent) return std::nullopt;
  const auto size = static_cast<std::ptrdiff_t>(std::min(wanted, waiting_.size()));
  const std::vector<float> samples(waiting_.begin(), waiting_.begin() + size);
  waiting_.erase(waiting_.begin(), waiting_.begin() + size);
  sent_ += samples.size();
  const std::vector pictures(std::make_move_iterator(pictures_.begin()), std::make_move_iterator(pictures_.end()));
  pictures_.clear();
  return encode_append(samples, std::exchange(force_, false), pictures);
}

void duplex_feed::begin() {
  sent_ = 0;
  answered_ = 0;
  force_ = false;
  if (pictures_.size() > 1) pictures_.erase(pictures_.begin(), pictures_.end() - 1);
}

void duplex_feed::keep_last(std::size_t samples) {
  if (waiting_.size() > samples)
    waiting_.erase(waiting_.begin(), waiting_.end() - static_cast<std::ptrdiff_t>(samples));
}

} // namespace parley::protocol::realtime
