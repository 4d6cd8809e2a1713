#include "protocol/realtime/duplex_feed.hpp"

#include "protocol/codec/client_side.hpp"

#include <algorithm>
#include <utility>

namespace parley::protocol::realtime {

std::size_t duplex_feed::hear(std::span<const float> samples) {
  waiting_.insert(waiting_.end(), samples.begin(), samples.end());
  std::size_t dropped = 0;
  for (; waiting_.size() > most_units_ * unit; ++dropped)
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(unit));
  return dropped;
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
  return encode_append(dialect::current, samples, std::exchange(force_, false));
}

void duplex_feed::begin() {
  sent_ = 0;
  answered_ = 0;
  force_ = false;
}

void duplex_feed::keep_last(std::size_t samples) {
  if (waiting_.size() > samples)
    waiting_.erase(waiting_.begin(), waiting_.end() - static_cast<std::ptrdiff_t>(samples));
}

} // namespace parley::protocol::realtime
