#include "protocol/call/call_input.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace parley::protocol::call {

bool call_input::may_take(double seconds, time_point now) {
  const std::chrono::duration<double> passed = now - std::exchange(counted_at_, now);
  left_s_ = std::min(most_ahead_s, left_s_ + pace * passed.count());
  if (left_s_ < seconds) return false;
  left_s_ -= seconds;
  return true;
}

std::vector<float> call_input::take(std::span<const std::byte> bytes, time_point now) {
  const auto packet = read_rtp(bytes);
  if (!packet || packet->payload_type != payload_type_) return {};
  const auto duration = opus_duration(packet->payload);
  if (!duration || !may_take(static_cast<double>(*duration) / rtp_rate, now)) return {};
  if (!buffer_.push(*packet, *duration, now)) return {};
  while (const auto piece = buffer_.pop(now)) {
    // What stands for lost packets counts like those that came.
    auto what = *piece;
    if (what.lost > 0 && !may_take(static_cast<double>(what.lost) / rtp_rate, now)) what.lost = 0;
    decoder_.decode(what, heard_);
  }
  if (heard_.size() < piece_samples) return {};
  return std::exchange(heard_, {});
}

} // namespace parley::protocol::call
