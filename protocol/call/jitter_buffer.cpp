#include "protocol/call/jitter_buffer.hpp"

#include <algorithm>
#include <utility>

namespace parley::protocol::call {

bool jitter_buffer::push(const rtp_packet& packet, std::uint32_t duration, time_point now) {
  if (!newest_ || packet.source != source_) { // a new stream
    waiting_.clear();
    source_ = packet.source;
    newest_ = next_ = packet.sequence;
    next_timestamp_ = packet.timestamp;
  }
  const auto ahead =
      static_cast<std::int16_t>(static_cast<std::uint16_t>(packet.sequence - static_cast<std::uint16_t>(*newest_)));
  const auto number = *newest_ + ahead;
  if (number < next_) return false;
  newest_ = std::max(*newest_, number);
  return waiting_
      .try_emplace(number, kept{packet.timestamp, duration, now, {packet.payload.begin(), packet.payload.end()}})
      .second;
}

std::optional<jitter_buffer::piece> jitter_buffer::pop(time_point now) {
  if (waiting_.empty()) return std::nullopt;
  const auto first = waiting_.begin();
  auto& [number, packet] = *first;
  const bool in_order = number == next_;
  if (!in_order && now < packet.came + patience && waiting_.size() <= most_waiting) return std::nullopt;
  piece out;
  const auto gap = packet.timestamp - next_timestamp_;
  // A sender that is silent sends less often, without a gap in its numbers: it goes on where it is.
  if (!in_order && gap <= longest_gap) out.lost = gap;
  out.next_of_lost = out.lost > 0;
  out.payload = std::move(packet.payload);
  next_ = number + 1;
  next_timestamp_ = packet.timestamp + packet.duration;
  waiting_.erase(first);
  return out;
}

} // namespace parley::protocol::call
